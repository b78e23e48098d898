package grant

import "time"

// alarm calls a function at the earliest of the times that it was set for. The zero value is not set. The
// mutex of the queue guards it.
type alarm struct {
	at    time.Time // zero: it is not set
	timer *time.Timer
}

// isSetBy reports whether f is called at that time or before.
func (a *alarm) isSetBy(at time.Time) bool { return !a.at.IsZero() && !a.at.After(at) }

// setBy has f called at that time or before.
func (a *alarm) setBy(at time.Time, f func()) {
	if a.isSetBy(at) {
		return
	}
	if a.timer != nil {
		a.timer.Stop() // it may be ringing: then f is called once more, and rung
	}
	a.at = at
	a.timer = time.AfterFunc(time.Until(at), f)
}

// rung is told by f that it was called. After that the alarm can be set again.
func (a *alarm) rung() { a.at = time.Time{} }
