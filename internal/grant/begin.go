package grant

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// hold makes the first hold of a granted tenure. It returns nil if the lease was over before that, if the tenure was
// outrun or lost, or if the client is closing. Then hold has given the tenure back, and the tenure's goroutine still
// has the turn of the line.
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
		c.HeldAtClose.Remove(t) // no Unlock of t will follow
		return nil
	}
	t.begin(terms)
	over, revoked := t.settle()
	q.mu.Unlock()
	for _, o := range over {
		c.Keeper.Lose(&o.item, lease.ErrGone)
	}
	if revoked != nil { // Redis revoked the grant while it became a hold
		c.Keeper.Lose(&t.item, revoked)
	}
	return &t.first.first
}

// isOutrun reports whether another goroutine of this process got a hold with this token or a greater one. That
// happens only after Redis lost its data: the tenure that Redis lost went on to hand out its reserved tokens. The
// next grant has a greater token, since each acquire says which token the client has seen. The caller holds the
// mutex.
func (t *tenure) isOutrun() bool {
	given := t.queue.alone.given
	if t.waiter.From != "" { // attached: this process may have held with that token
		given--
	}
	return t.excludesHere() && t.waiter.Grant.Token <= given
}

// gives notes the token of a hold that begins. The caller holds the mutex.
func (t *tenure) gives(token int64) {
	if t.excludesHere() {
		t.queue.alone.given = max(t.queue.alone.given, token)
	}
}

// excludesHere reports whether each hold of this process must have a greater token than the hold before. That is so
// for holds that exclude each other: they follow one another. For a part of a redlock excludesHere reports false,
// since the redlock itself compares the tokens.
func (t *tenure) excludesHere() bool {
	return t.queue.kind.Exclusive && !t.shared && t.partOf == nil
}

// keep gives the lease to the keeper, which renews it on the terms of the first hold.
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

// begin begins the first turn, with what Redis granted. The caller holds the mutex.
func (t *tenure) begin(terms *terms.Terms) {
	q, grant := t.queue, &t.waiter.Grant
	t.become(wait.Held)
	q.At.Client.Count(-1, 1)
	t.terms, t.turn, t.stay.span = terms, &t.first, terms.Linger
	if t.waiter.Demand.Lingers {
		q.enter() // until the tenure ends, this process must hear that others want the lock
	}
	t.handOffs.token, t.handOffs.reserved = grant.Token, grant.Reserved
	t.gives(grant.Token)
	switch {
	case !q.kind.Exclusive:
		t.beginBudget(terms)
	case grant.Others: // otherwise a message may have said so since. For permits a message always says so
		t.contendNow()
	}
	if t.permits == All {
		t.permits, t.handOffs.reserved = int(grant.Reserved), 0
	}
}

// settle decides where the turn of the line goes. If goroutines share the tenure, settle passes the turn on, and the
// goroutines in the line join the tenure. If the lock may be handed off locally, the tenure keeps the turn for the
// next goroutines of this process. If local hand-offs are not allowed, settle passes the turn on: the next goroutine
// queues in Redis while t holds. over: the tenures of this client that have ended because t holds. revoked: why Redis
// has revoked the grant, if it has. The caller holds the mutex.
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

// supersede makes t the holder. If this client still holds another tenure, it has sent no release of that tenure. So
// Redis has lost the tenure with the smaller token. Redis has also lost a shared tenure with a smaller token that
// others may still join. The caller holds the mutex, and must lose the tenures in over.
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

// supersedeWriter is supersede for a shared tenure t. If this client also has an exclusive tenure, one of the two has
// ended in Redis, unless a downgrade is under way. While the client releases the exclusive tenure, that tenure cannot
// be lost.
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
