package grant

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// A basket is several locks of one client and one slot. One script takes them, and one script gives them back. Each
// lock has a tenure of its own, with renewal, loss and release like any other tenure.

// FitsInto reports whether one script can take p and other.
func (p *Primitive) FitsInto(other *Primitive) bool {
	a, b := p.Queue, other.Queue
	return a.At.Client == b.At.Client && a.kind == b.kind && a.batch == b.batch && p.mayGoTogether() && other.mayGoTogether()
}

// mayGoTogether reports whether one script can take p with others. A lock that waits for replicas waits by itself.
func (p *Primitive) mayGoTogether() bool {
	return p.Queue.mayGoTogether() && !p.Shared && p.Queue.At.Client.Options.Replicas == 0
}

// mayGoTogether reports whether one script can acquire several primitives of the queue's kind. The scripts of baskets
// cannot take turns with Redisson.
func (q *Queue) mayGoTogether() bool { return q.kind.Together != nil && !q.At.Client.Options.Redisson }

// AcquireTogether makes one attempt for primitives that fit into one basket, at most [lua.BasketLimit] of them. If
// all is true, it takes every lock or none. Otherwise it takes the locks before the first that is not free. It
// returns the holds, whose contexts are derived from a.Parent. next is the index of the first lock that was not free.
// If one script cannot take the locks, next is 0. Acquire ps[next] alone: the script's refusal may be out of date,
// the refusal of that acquire is not. AcquireTogether does not wait, whatever a says.
func AcquireTogether(a Attempt, ps []*Primitive, all bool) (holds []*Hold, next int, err error) {
	began := time.Now()
	a.Try = true
	for i, p := range ps {
		if err := p.enter(&a); err != nil {
			leaveAll(&a, ps[:i])
			p.Attempted(a.Parent, 0, began, false, err)
			return nil, i, err
		}
	}
	defer leaveAll(&a, ps)
	tenures := newTenures(&contender{Attempt: a}, ps)
	if tenures == nil {
		err := fail.Wrap(ps[0].Name, fail.ErrClosed)
		ps[0].Attempted(a.Parent, 0, began, false, err)
		return nil, 0, err
	}
	errs, free := takeTogether(a.Waits, ps[0].Queue.kind.Together(ps[0].Queue), tenures, all)
	if failed := failure(errs); failed < len(ps) {
		discardFrom(0, tenures, errs)
		if class := lua.Classify(errs[failed]); class == lua.Permanent || class == lua.WrongType {
			return nil, 0, nil // perhaps one lock is the cause, or the slot is moving
		}
		err := ps[failed].failed(&a, errs[failed])
		ps[failed].Attempted(a.Parent, 0, began, false, err)
		return nil, failed, err
	}
	holds = holdPrefix(a.Parent, ps, tenures, errs)
	session.HookOrUndo(func() {
		for _, h := range holds {
			acquired(h, began, false)
		}
	}, func() { GiveBack(holds) })
	if len(holds) > 0 {
		free = len(holds)
	}
	return holds, free, nil
}

// failure returns the index of the first error. It skips ErrBusy: another owner has that lock.
func failure(errs []error) int {
	for i, err := range errs {
		if err != nil && !errors.Is(err, wait.ErrBusy) {
			return i
		}
	}
	return len(errs)
}

func leaveAll(a *Attempt, ps []*Primitive) {
	for _, p := range ps {
		p.leave(a)
	}
}

// newTenures returns nil once the client is closing.
func newTenures(c *contender, ps []*Primitive) []*tenure {
	tenures := make([]*tenure, 0, len(ps))
	for _, p := range ps {
		t := p.newTenure(c)
		if t == nil {
			discardFrom(0, tenures, make([]error, len(tenures))) // the client has sent nothing for them
			return nil
		}
		// The script writes no demand but the lease. So Redis does not know that the lock may linger, and another
		// client that wants the lock would not tell us. That is why the lock does not linger.
		t.waiter.Demand = lua.Demand{}
		tenures = append(tenures, t)
	}
	return tenures
}

// takeTogether asks for all tenures with one command. errs has the outcome of each tenure. free is how many locks
// were free before the first that was not.
func takeTogether(waits context.Context, commands Together, tenures []*tenure, all bool) (errs []error, free int) {
	members, parts := make([]wait.Member, len(tenures)), make([]lua.Part, len(tenures))
	for i, t := range tenures {
		members[i] = wait.Member{Waiters: t.queue.waiters, Waiter: &t.waiter}
		parts[i] = t.part()
	}
	free = len(tenures)
	errs = wait.Together(waits, members, func(ctx context.Context, until int64) ([]lua.Acquired, error) {
		sent := time.Now()
		replies, n, err := commands.TakeTogether(session.WithoutDeadline(ctx), parts, all, until)
		if err != nil {
			return nil, err
		}
		free = n
		for i, t := range tenures {
			t.queue.heed(ctx, &t.waiter, replies[i], sent, lua.Try)
		}
		return replies, nil
	})
	return errs, free
}

// part returns what the scripts of a basket need to know of the tenure.
func (t *tenure) part() lua.Part {
	return lua.Part{Keys: t.queue.At.Keys, Owner: t.waiter.Owner, Lease: session.Milliseconds(t.waiter.Lease), Seen: t.queue.At.Floor.Load()}
}

// holdPrefix makes holds of the tenures, up to the first tenure that gets no hold. It gives back the grants of the
// tenures after that one.
func holdPrefix(parent context.Context, ps []*Primitive, tenures []*tenure, errs []error) []*Hold {
	holds := make([]*Hold, 0, len(ps))
	for i, t := range tenures {
		if errs[i] == nil {
			if h := t.hold(parent, &ps[i].terms); h != nil {
				holds = append(holds, h)
				continue
			}
		}
		discardFrom(i+1, tenures, errs)
		break
	}
	return holds
}

// discardFrom gives back the grants of tenures[i:], which have no holds yet. If Redis granted a tenure nothing, its
// entry in errs says why.
func discardFrom(i int, tenures []*tenure, errs []error) {
	for ; i < len(tenures); i++ {
		if errs[i] == nil {
			tenures[i].cancel()
		}
	}
}
