package grant

// worth is what a process has seen of the worth of lingering, for one name. If others ask for a lock each time before
// this process uses it again, lingering costs them a trip, and no process gains. Then the process lets a tenure
// linger only now and then, to see whether that has changed. The zero value is ready for use. The queue's mutex
// guards a worth.
type worth struct {
	vain  int // how many parked tenures in a row others asked for before a use here
	rests int // how many of the next tenures do not linger
}

const (
	triesInVain  = 2  // fewer do not say yet that others go on asking
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

// used notes that a goroutine uses a parked tenure again.
func (w *worth) used() { w.vain = 0 }

// wanted notes that others asked for a parked tenure.
func (w *worth) wanted() {
	if w.vain++; w.vain >= triesInVain {
		w.rests = min(1<<min(w.vain, 16), longestRests)
	}
}
