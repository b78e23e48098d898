package grant

import "github.com/latchkey-go/latchkey/internal/wait"

// How far a tenure has come is its [wait.State], whose comment has the table of transitions. The queue's mutex guards
// the state, as it guards all that is true of the name.

// state returns how far the tenure has come. The caller holds the mutex.
func (t *tenure) state() wait.State { return t.waiter.State() }

// become changes the state. The caller holds the mutex.
func (t *tenure) become(next wait.State) {
	t.queue.locked()
	t.queue.waiters.Become(&t.waiter, next)
}

// owns reports whether this process has the lock, as far as it knows, and nothing has said that the tenure is over.
// The caller holds the mutex.
func (t *tenure) owns() bool { return t.state().Owns() }

// wasHeld reports whether the tenure has had a hold.
func (t *tenure) wasHeld() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.state() >= wait.Held
}

// finish ends a tenure that has had holds. If another call has ended the tenure, finish does nothing and reports
// false. If an acquire of the tenure is unanswered or may still arrive, the client removes what is left of the tenure
// in Redis.
func (t *tenure) finish() bool { return t.finishBy(t.queue.waiters.End) }

// giveBack is finish for a tenure that Redis may still take for held: the client removes it there.
func (t *tenure) giveBack() bool { return t.finishBy(t.queue.waiters.Cancel) }

func (t *tenure) finishBy(end func(*wait.Waiter)) bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if !t.owns() {
		return false
	}
	t.retire(end)
	return true
}

// retire takes a tenure that is over out of what this process has of the name. end sees to what is left of the tenure
// in Redis. Until that is gone, the tenure counts as a waiter. The caller holds the mutex.
func (t *tenure) retire(end func(*wait.Waiter)) {
	q := t.queue
	if t.sharing != notShared {
		t.sharing = notShared
		q.shared.held--
		q.exit()
	}
	if h := q.half(t.shared); h.holder == t {
		h.holder = nil
	}
	if t.stay.left == nil && t.state() != wait.Offered { // else the tenure counts already
		q.At.Client.Count(1, -1)
	}
	if t.waiter.Demand.Lingers {
		q.exit()
	}
	if t.asks != nil {
		t.asks.Stop()
	}
	end(&t.waiter)
}
