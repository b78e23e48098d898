package wait

// looks is how many places Give looks at. Behind so many who want something else nobody is looked for:
// whoever gives has the line to himself meanwhile.
const looks = 100

// Give gives something to the first who waits in the line and wants it, and reports whether one does. That
// one leaves the line, and the turn stays where it is. fits must not block.
func (l *Line[T]) Give(gift T, fits func(wants any) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.first
	for n := 0; p != nil && n < looks; n++ {
		if p.wants != nil && fits(p.wants) {
			l.remove(p)
			p.given = true
			p.turn <- gift // has room: it is sent to once
			return true
		}
		p = p.next
	}
	return false
}
