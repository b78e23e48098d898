package grant

import (
	"fmt"

	"github.com/latchkey-go/latchkey/internal/invariant"
)

// phase is how far a tenure has come. Only [tenure.become] changes it. These are the legal transitions, and
// no other:
//
//	from      to        when
//	waiting   held      its grant becomes a hold
//	held      released  a release or an offer of it was answered, or matters no more; or nobody took it
//	held      lost      its lease can no longer be trusted, or Redis says that somebody else has the lock
//
// A tenure that waits and gives up stays in that phase: its waiter has phases of its own (package wait), and
// so has what a release or a loss leaves behind in Redis.
type phase uint8

const (
	waiting  phase = iota // its waiter competes
	held                  // it has the lock, or permits, as far as is known; also between two turns
	released              // it has ended, and not because its lease could not be trusted
	lost                  // its lease could not be trusted any more when it ended
)

var phaseNames = [...]string{"waiting", "held", "released", "lost"}

func (p phase) String() string { return phaseNames[p] }

// become changes the phase of a tenure. The mutex is held.
func (t *tenure) become(next phase) {
	if invariant.Checked {
		legal := t.phase == waiting && next == held || t.phase == held && next > held
		if !legal {
			panic(fmt.Sprintf("grant: %s was %v and cannot become %v", t.waiter.Owner, t.phase, next))
		}
	}
	t.phase = next
}

func (t *tenure) wasHeld() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.phase != waiting
}

// finish ends a tenure that is held. It reports false, and does nothing, when another call has ended it. What
// is left of it in Redis is removed when cancel says so, and also while an acquire of it is unanswered or may
// still arrive.
func (t *tenure) finish(how phase, cancel bool) bool {
	t.queue.mu.Lock()
	first := t.phase == held
	if first {
		t.become(how)
	}
	t.queue.mu.Unlock()
	if first {
		t.retire(cancel)
	}
	return first
}

// letGo takes a tenure that is over out of what this process holds of the name.
func (t *tenure) letGo() {
	q := t.queue
	q.mu.Lock()
	shared := t.sharing
	if shared {
		t.sharing, t.open = false, false
		q.shared.held--
	}
	if h := q.half(t.shared); h.holder == t {
		h.holder = nil
	}
	counted := t.stay.over
	t.stay.over = true
	q.mu.Unlock()
	if !counted {
		q.At.Client.Count(1, -1)
	}
	if shared {
		q.exit()
	}
	if t.waiter.Demand.Lingers {
		q.exit()
	}
}

// retire takes a tenure that is over out of what the client holds, and sees to what is left of it in Redis.
func (t *tenure) retire(cancel bool) {
	t.letGo() // it counts as one that waits until Gone
	if cancel {
		t.queue.waiters.Cancel(&t.waiter)
	} else {
		t.queue.waiters.End(&t.waiter)
	}
}
