package grant

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
)

// Draw acquires without a hold: what is granted is the caller's, and no tenure goes on. It returns the number
// under which Redis knows that, and whether Redis may forget it: nothing of it can arrive any more.
func (p *Primitive) Draw(parent, waits context.Context, permits int, try bool) (number uint64, settled bool, err error) {
	if err := p.enter(parent, try); err != nil {
		return 0, false, err
	}
	defer p.leave(try)
	t := p.newTenure(permits, false)
	if t == nil {
		return 0, false, session.Wrap(p.Name, session.ErrClosed)
	}
	t.asks(parent)
	if err := p.Queue.waiters.Wait(waits, &t.waiter, try); err != nil {
		return 0, false, p.notDrawn(parent, waits, err)
	}
	return t.waiter.Number, t.drawn(), nil
}

// notDrawn is the error of a Draw. It stands apart because of what Draw has on its stack while it sleeps.
//
//go:noinline
func (p *Primitive) notDrawn(parent, waits context.Context, err error) error {
	return p.failed(&contender{parent: parent, waits: waits}, err)
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
