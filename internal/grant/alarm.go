package grant

import (
	"sync"
	"time"
)

// alarm calls a function at the earliest of the times that it was set for. The zero value is not set; methods
// are safe for concurrent use.
type alarm struct {
	mu    sync.Mutex
	at    time.Time // zero: it is not set
	timer *time.Timer
}

// setBy has f called at that time or before.
func (a *alarm) setBy(at time.Time, f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	if a.timer != nil {
		a.timer.Stop() // it may be ringing: then f is called once more, and rung
	}
	a.at, a.timer = at, time.AfterFunc(time.Until(at), f)
}

// rung is told by f that it was called. After that the alarm can be set again.
func (a *alarm) rung() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = time.Time{}
}
