package grant

// worth is what a process has seen of the worth of lingering, for one name. Where others ask for a lock each
// time before it is used here again, lingering costs them a trip, and no process gains. Then the process lingers
// with one tenure only now and then, to see whether that has changed. The zero value is ready for use.
// The mutex of the queue guards it.
type worth struct {
	vain  int // how many in a row others have asked for before they were used here again
	rests int // so many tenures that follow do not linger
}

const (
	triesInVain  = 2  // so many do not say yet that others go on asking
	longestRests = 64 // tenures
)

// linger reports whether the next tenure shall linger.
func (w *worth) linger() bool {
	if w.rests > 0 {
		w.rests--
		return false
	}
	return true
}

// used is told that what was parked is used again.
func (w *worth) used() { w.vain = 0 }

// wanted is told that others asked for what was parked.
func (w *worth) wanted() {
	if w.vain++; w.vain >= triesInVain {
		w.rests = min(1<<min(w.vain, 16), longestRests)
	}
}
