package grant

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// hold makes a granted tenure its first hold. It returns nil when the lease was over before that, or when the
// client was closed. Then the tenure has been given back, and a delegate still has the turn of the line.
func (t *tenure) hold(parent context.Context, terms *terms) *Hold {
	session.Raise(t.queue.At.Floor, t.waiter.Grant.Token)
	t.take(parent, terms)
	t.keep()
	if t.item.Left() <= 0 || t.queue.At.Client.Closing.Err() != nil {
		t.queue.At.Client.Keeper.Remove(&t.item)
		t.finish(released, true)
		return nil
	}
	over, revoked := t.settle()
	for _, o := range over {
		t.queue.At.Client.Keeper.Lose(&o.item, lease.ErrGone)
	}
	if revoked != nil { // while it became a hold
		t.queue.At.Client.Keeper.Lose(&t.item, revoked)
	}
	return &t.first.first
}

// take begins the first turn, with what was granted.
func (t *tenure) take(parent context.Context, terms *terms) {
	grant := t.waiter.Grant
	t.item.Owner, t.item.Lease = t, terms.lease
	if terms.maxHold > 0 {
		t.item.End = grant.Moment.Add(terms.maxHold)
	}
	t.first = turn{tenure: t, token: grant.Token, sequence: t.waiter.Sequence(), moment: grant.Moment}
	t.first.begin(parent)
	t.first.had.Store(true)
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.become(held)
	t.terms, t.turn, t.stay.span = *terms, &t.first, terms.linger
	if t.waiter.Demand.Lingers {
		t.queue.enter() // as long as it is there, its process must hear that others want it
	}
	t.handOffs.token, t.handOffs.reserved = grant.Token, grant.Reserved
	switch {
	case !t.queue.kind.Exclusive:
		t.beginBudget(terms)
		if grant.Others {
			t.othersWaitNow()
		}
	case grant.Others: // else a message may have said so since
		t.contendNow()
	}
	if t.permits == All {
		t.permits, t.handOffs.reserved = int(grant.Reserved), 0
	}
}

// keep has the lease renewed.
func (t *tenure) keep() {
	c, grant := t.queue.At.Client, t.waiter.Grant
	c.Count(-1, 1)
	if grant.Short {
		c.Keeper.KeepShort(&t.item, grant.Moment, min(t.terms.lease, wait.ShortLease))
	} else {
		c.Keeper.Keep(&t.item, grant.Moment, t.terms.lease)
	}
	c.WatchClock()
}

// settle passes the turn of the line on, where the goroutines share the tenure: they join it. Else it keeps
// the turn for those who follow in this process, or passes it on where the lock cannot be handed off locally:
// the next one queues in Redis while this one holds. It returns the tenures of this client that are over
// because this one holds, and why Redis has revoked the grant, if it has.
func (t *tenure) settle() (over []*tenure, revoked error) {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case t.phase != held: // it was lost just now
	case t.shared:
		t.share()
		over = q.supersedeWriter(t)
	case q.kind.Exclusive:
		over = q.supersede(t)
	}
	t.inLine = t.delegate && q.kind.Exclusive && !t.shared && t.terms.passable() && t.phase == held
	switch {
	case !t.delegate || t.inLine:
	case q.kind.Exclusive:
		q.passTurn(&q.half(t.shared).line)
	default:
		q.letIn(t.first.sequence == 0)
	}
	if t.revoked.token >= t.first.token {
		revoked = t.revoked.why
	}
	return over, revoked
}
