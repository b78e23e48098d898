package grant

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// hold makes a granted tenure its first hold. It returns nil when the lease was over before that, when it was
// outrun, or when the client was closed. Then the tenure has been given back, and its goroutine still has the
// turn of the line.
func (t *tenure) hold(parent context.Context, terms *terms.Terms) *Hold {
	q, c, grant := t.queue, t.queue.At.Client, &t.waiter.Grant
	session.Raise(q.At.Floor, grant.Token)
	t.first = turn{tenure: t, token: grant.Token, sequence: t.waiter.Sequence(), moment: grant.Moment}
	t.first.begin(parent)
	t.first.had.Store(true)
	t.keep(terms)
	q.mu.Lock()
	if t.item.Left() <= 0 || t.isOutrun() || t.loss != nil || c.Closing.Err() != nil {
		q.waiters.Cancel(&t.waiter)
		q.mu.Unlock()
		c.Keeper.Remove(&t.item)
		c.HeldAtClose.Remove(t) // it will not be unlocked
		return nil
	}
	t.begin(terms)
	over, revoked := t.settle()
	q.mu.Unlock()
	for _, o := range over {
		c.Keeper.Lose(&o.item, lease.ErrGone)
	}
	if revoked != nil { // while it became a hold
		c.Keeper.Lose(&t.item, revoked)
	}
	return &t.first.first
}

// isOutrun reports whether another goroutine of this process has a hold with this token or a greater one. That
// happens only after Redis lost its data: the tenure that was lost with them went on handing out the tokens
// that it had reserved. The next grant has a greater token, since each acquire says which the client has seen.
// The mutex is held.
func (t *tenure) isOutrun() bool {
	given := t.queue.alone.given
	if t.waiter.From != "" { // this process may have had it before
		given--
	}
	return t.excludesHere() && t.waiter.Grant.Token <= given
}

// gives notes the token of a hold that begins. The mutex is held.
func (t *tenure) gives(token int64) {
	if t.excludesHere() {
		t.queue.alone.given = max(t.queue.alone.given, token)
	}
}

// excludesHere reports whether each hold of this process must have a greater token than the one before: holds that
// exclude each other come one after the other. It reports false for a part of a redlock, which compares the tokens
// itself.
func (t *tenure) excludesHere() bool {
	return t.queue.kind.Exclusive && !t.shared && t.partOf == nil
}

// keep has the lease renewed, on the terms of its first hold.
func (t *tenure) keep(terms *terms.Terms) {
	c, grant := t.queue.At.Client, &t.waiter.Grant
	t.item.Owner, t.item.Lease = t, terms.Lease
	if terms.MaxHold > 0 {
		t.item.End = grant.Moment.Add(terms.MaxHold)
	}
	if grant.Short {
		c.Keeper.KeepShort(&t.item, grant.Moment, min(terms.Lease, wait.ShortLease))
	} else {
		c.Keeper.Keep(&t.item, grant.Moment, terms.Lease)
	}
	c.WatchClock()
}

// begin is the first turn, with what was granted. The mutex is held.
func (t *tenure) begin(terms *terms.Terms) {
	q, grant := t.queue, &t.waiter.Grant
	t.become(wait.Held)
	q.At.Client.Count(-1, 1)
	t.terms, t.turn, t.stay.span = *terms, &t.first, terms.Linger
	if t.waiter.Demand.Lingers {
		q.enter() // as long as it is there, its process must hear that others want it
	}
	t.handOffs.token, t.handOffs.reserved = grant.Token, grant.Reserved
	t.gives(grant.Token)
	switch {
	case !q.kind.Exclusive:
		t.beginBudget(terms)
	case grant.Others: // else a message may have said so since; of permits one always does
		t.contendNow()
	}
	if t.permits == All {
		t.permits, t.handOffs.reserved = int(grant.Reserved), 0
	}
}

// settle passes the turn of the line on, where the goroutines share the tenure: they join it. Else it keeps
// the turn for those who follow in this process, or passes it on where the lock cannot be handed off locally:
// the next one queues in Redis while this one holds. It returns the tenures of this client that are over
// because this one holds, and why Redis has revoked the grant, if it has. The mutex is held.
func (t *tenure) settle() (over []*tenure, revoked error) {
	q := t.queue
	switch {
	case t.shared:
		t.share()
		over = q.supersedeWriter(t)
	case q.kind.Exclusive:
		over = q.supersede(t)
	}
	switch {
	case !t.hasTurn, q.kind.Exclusive && !t.shared && t.terms.Passable():
	case q.kind.Exclusive:
		t.hasTurn = false
		q.passTurn(&q.half(t.shared).line)
	default:
		t.hasTurn = false
		q.letIn(t.first.sequence == 0)
	}
	if t.revoked.token >= t.first.token {
		revoked = t.revoked.why
	}
	return over, revoked
}

// supersede makes a tenure the holder. If another one of this client is still held, the one with the smaller
// token is lost: a release is sent only for a tenure that is held no more. So is one that is shared, and that
// others may still join. The mutex is held; the caller loses what is returned.
func (q *Queue) supersede(t *tenure) (over []*tenure) {
	if q.shared != nil {
		if s := q.shared.holder; s != nil && s.first.token < t.first.token {
			over = append(over, s)
		}
	}
	before := q.alone.holder
	if before != nil && before.first.token > t.first.token {
		return append(over, t)
	}
	q.alone.holder = t
	if before != nil {
		over = append(over, before)
	}
	return over
}

// supersedeWriter is supersede for a tenure that is shared. One of this client that is its holder's alone has
// ended in Redis, or this one has, unless a downgrade is under way. While it is being released it cannot be
// lost.
func (q *Queue) supersedeWriter(t *tenure) (over []*tenure) {
	switch before := q.alone.holder; {
	case before == nil || before.mayBeShared():
		return nil
	case before.first.token > t.first.token:
		return []*tenure{t}
	default:
		return []*tenure{before}
	}
}
