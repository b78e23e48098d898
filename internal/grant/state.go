package grant

import "github.com/latchkey-go/latchkey/internal/wait"

// How far a tenure has come is [wait.State], where the table of transitions is. The mutex of the queue guards
// it, as all that is true of the name.

// state is how far the tenure has come. The mutex is held.
func (t *tenure) state() wait.State { return t.waiter.State() }

// become changes it. The mutex is held.
func (t *tenure) become(next wait.State) {
	t.queue.locked()
	t.queue.waiters.Become(&t.waiter, next)
}

// owns reports whether the lock is the process's, as far as it knows, and nothing has said that it is over.
// The mutex is held.
func (t *tenure) owns() bool { return t.state().Owns() }

// wasHeld reports whether the tenure has had a hold.
func (t *tenure) wasHeld() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.state() >= wait.Held
}

// finish ends a tenure that has had holds. It reports false, and does nothing, when another call has ended
// it. What is left of it in Redis is removed while an acquire of it is unanswered or may still arrive.
func (t *tenure) finish() bool { return t.finishBy(t.queue.waiters.End) }

// giveBack is finish for a tenure that Redis may still take for held: it is removed there.
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

// retire takes a tenure that is over out of what this process has of the name, and sees to what is left of it
// in Redis. It counts as one that waits until that is gone. The mutex is held.
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
	if t.stay.left == nil && t.state() != wait.Offered { // else it counts already
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
