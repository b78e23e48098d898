package grant

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Draw acquires without a hold: what is granted is the caller's, and no tenure goes on. It returns the number
// under which Redis knows that, whether Redis may forget it: nothing of it can arrive any more; and whether
// it waited for others.
func (p *Primitive) Draw(a Attempt) (number uint64, settled, contended bool, err error) {
	if err := p.enter(&a); err != nil {
		return 0, false, false, err
	}
	defer p.leave(&a)
	if a.Try {
		if away := p.KnownOutage(); away != nil {
			return 0, false, false, away
		}
	}
	t := p.newDraw(&a)
	if t == nil {
		return 0, false, false, fail.Wrap(p.Name, fail.ErrClosed)
	}
	slow := p.slowWait(&a)
	err = p.Queue.waiters.Wait(a.Waits, &t.waiter)
	slow.End()
	contended = t.endsContention()
	if err != nil {
		return 0, false, contended, p.failed(&a, err)
	}
	return t.waiter.Number, t.drawn(), contended, nil
}

// newDraw is newTenure for an attempt that ends without a hold. It stands apart because of what Draw has on
// its stack while it sleeps.
//
//go:noinline
func (p *Primitive) newDraw(a *Attempt) *tenure {
	return p.newTenure(&contender{Attempt: *a})
}

// ended ends a tenure that had no holds, and whose grant nobody here has any more.
func (t *tenure) ended() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.queue.waiters.End(&t.waiter)
}

// drawn ends a tenure whose grant is the caller's, and reports whether nothing of it can arrive any more.
// While a copy of its acquire, or a message about it, may still arrive, it stays known here and in Redis, so
// that these are not taken for something else.
func (t *tenure) drawn() (settled bool) {
	c, n := t.queue.At.Client, t.waiter.Number
	if !t.queue.waiters.Outstanding(&t.waiter) {
		t.ended()
		return true
	}
	c.Count(-1, 0)
	time.AfterFunc(session.RecordTTL, func() { c.Drop(n) })
	return false
}
