package grant

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Draw acquires a permit that the caller keeps without a hold or a tenure. Redis knows the permit by number, which is
// 0 if the permit came from the line. settled: nothing of this acquire can reach Redis any more, so Redis may forget
// the number. contended: the call has waited for others.
func (p *Primitive) Draw(a Attempt) (number uint64, settled, contended bool, err error) {
	var c contender // filled in place, as in Acquire
	c.Attempt = a
	if err := p.enter(&c.Attempt); err != nil {
		return 0, false, false, err
	}
	defer p.leave(&c.Attempt)
	slow := p.slowWait(&c.Attempt)
	has, err := p.prepareDraw(&c)
	if err == nil && !has {
		err = p.Queue.waiters.Wait(c.Waits, &c.tenure.waiter)
		number, settled, err = p.drawn(&c, err)
	}
	slow.End()
	return number, settled, c.finishContention(), err
}

// prepareDraw runs before c competes. It reports whether c has a permit already, and need not compete. prepareDraw is
// a function of its own so that Draw has less on its stack while the goroutine sleeps.
//
//go:noinline
func (p *Primitive) prepareDraw(c *contender) (has bool, err error) {
	switch {
	case !c.Try && p.Delegate:
		g, err := p.standForPermits(c)
		if g.permit || err != nil {
			return g.permit, err
		}
	case c.Try:
		if away := p.KnownOutage(); away != nil {
			return false, away
		}
		fallthrough
	default:
		c.tenure = p.newTenure(c)
	}
	if c.tenure != nil {
		return false, nil
	}
	if c.inTurn {
		p.Queue.passOn(p.Shared)
	}
	return false, fail.Wrap(p.Name, fail.ErrClosed)
}

// drawn ends the tenure of c, whose wait has ended with err.
//
//go:noinline
func (p *Primitive) drawn(c *contender, err error) (number uint64, settled bool, _ error) {
	if err != nil {
		return 0, false, p.failed(&c.Attempt, err)
	}
	t, q := c.tenure, p.Queue
	q.mu.Lock()
	if t.waiter.Demand.Turns > 0 {
		q.passed.grow(&t.terms.Budget)
	}
	if c.inTurn {
		t.hasTurn = false
		q.letIn(t.waiter.Sequence() == 0)
	}
	q.mu.Unlock()
	return t.waiter.Number, t.settled(), nil
}

// ended ends a tenure that had no holds, and has left its grant to the caller.
func (t *tenure) ended() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.queue.waiters.End(&t.waiter)
}

// settled ends a tenure whose grant is the caller's. It reports whether no copy of the acquire, and no message about
// the tenure, can arrive any more. While either may arrive, the client and Redis still know the tenure, so they do
// not take the copy or the message for something else.
func (t *tenure) settled() bool {
	c, n := t.queue.At.Client, t.waiter.Number
	if !t.queue.waiters.Outstanding(&t.waiter) {
		t.ended()
		return true
	}
	c.Count(-1, 0)
	time.AfterFunc(session.RecordTTL, func() { c.Drop(n) })
	return false
}
