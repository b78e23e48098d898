package grant

import (
	"sync"
	"sync/atomic"
	"time"
)

// ends is the timer of what is parked under one name. The zero value is not set. Its methods are safe for
// concurrent use.
//
// One that is set for an earlier time is left as it is: when it fires, whoever looks sets it anew. So as a
// rule an Unlock sets none, and takes no lock.
type ends struct {
	due atomic.Int64 // when it fires, since epoch; 0: it is not set. Written with the mutex held

	mu    sync.Mutex
	timer *time.Timer
}

var epoch = time.Now()

// isBy reports whether it fires at that time, or before.
func (e *ends) isBy(until time.Time) bool {
	due := e.due.Load()
	return due != 0 && due <= int64(until.Sub(epoch))
}

// set has look called at that time, unless it is by then.
func (e *ends) set(until time.Time, look func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isBy(until) {
		return
	}
	e.due.Store(int64(until.Sub(epoch)))
	if d := time.Until(until); e.timer != nil {
		e.timer.Reset(d)
	} else {
		e.timer = time.AfterFunc(d, func() {
			e.mu.Lock()
			e.due.Store(0) // before it looks: whoever parks something after that sets it
			e.mu.Unlock()
			look()
		})
	}
}
