package wait

// Parking: what is left in an empty line waits there for whoever comes next. Nobody has the turn meanwhile.

// Park ends the caller's turn, or begins without one when not inTurn. It passes what is left to the next, as
// Pass does, or parks it when nobody waits. When it does neither, what is left stays the caller's: somebody
// else has the turn, or has parked something.
func (l *Line[T]) Park(left T, inTurn bool) (passed, parked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if inTurn && l.pass(left) {
		return true, false
	}
	var none T
	if l.taken || l.parked != none {
		return false, false
	}
	l.parked = left
	return false, true
}

// Unpark takes out what is parked, if it is this. It reports whether it was: then nobody comes to have it.
func (l *Line[T]) Unpark(left T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parked != left {
		return false
	}
	var none T
	l.parked = none
	return true
}

// Parked returns what is parked, or the zero value.
func (l *Line[T]) Parked() T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.parked
}

// EnterParked takes the turn with what is parked. It reports false, and does nothing, when nothing is.
func (l *Line[T]) EnterParked() (left T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parked == left {
		return left, false
	}
	return l.take(), true
}

// take begins a turn with what was parked. The mutex is held, and nobody has the turn.
func (l *Line[T]) take() (left T) {
	var none T
	left, l.parked, l.taken = l.parked, none, true
	return left
}
