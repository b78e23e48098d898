package grant

import "sync/atomic"

// worth is what a process has seen of the worth of lingering, for one name. Where others ask for a lock each
// time before it is used here again, lingering costs them a trip, and nobody gains. Then the process lingers
// with one tenure only now and then, to see whether that has changed. The zero value is ready for use; its
// methods are safe for concurrent use.
type worth struct {
	vain  atomic.Int32 // how many in a row others have asked for before they were used here again
	rests atomic.Int32 // so many tenures that follow do not linger
}

const (
	triesInVain  = 2  // so many do not say yet that others go on asking
	longestRests = 64 // tenures
)

// linger reports whether the next tenure shall linger.
func (w *worth) linger() bool { return w.rests.Load() <= 0 || w.rests.Add(-1) < 0 }

// used is told that what was parked is used again.
func (w *worth) used() {
	if w.vain.Load() > 0 {
		w.vain.Store(0)
	}
}

// wanted is told that others asked for what was parked.
func (w *worth) wanted() {
	if n := w.vain.Add(1); n >= triesInVain {
		w.rests.Store(min(int32(1)<<min(n, 16), longestRests))
	}
}
