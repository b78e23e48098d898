package latchkeycertmagic

// Key is key.
func Key(name string) string { return key(name) }

// Names is how many names are in use.
func (l *Locker) Names() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.names)
}
