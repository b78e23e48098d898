package grant

import (
	"sync"
	"sync/atomic"
	"time"
)

// alarm calls a function at the earliest of the times that it was set for. The zero value is not set; methods
// are safe for concurrent use.
type alarm struct {
	at atomic.Int64 // since epoch; 0: it is not set. Written with the mutex held

	mu    sync.Mutex
	timer *time.Timer
}

var epoch = time.Now()

// isSetBy reports whether f is called at that time or before. It takes no lock: nearly every Unlock that
// parks asks, and finds that it is.
func (a *alarm) isSetBy(at time.Time) bool {
	set := a.at.Load()
	return set != 0 && set <= int64(at.Sub(epoch))
}

// setBy has f called at that time or before.
func (a *alarm) setBy(at time.Time, f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isSetBy(at) {
		return
	}
	if a.timer != nil {
		a.timer.Stop() // it may be ringing: then f is called once more, and rung
	}
	a.at.Store(int64(at.Sub(epoch)))
	a.timer = time.AfterFunc(time.Until(at), f)
}

// rung is told by f that it was called. After that the alarm can be set again.
func (a *alarm) rung() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at.Store(0)
}
