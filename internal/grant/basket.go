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

// A basket is several locks of one client and one slot that one script takes, and one gives back. Each has a
// tenure of its own, which is renewed, lost and released like any other.

// FitsInto reports whether one script can take both.
func (p *Primitive) FitsInto(other *Primitive) bool {
	a, b := p.Queue, other.Queue
	return a.At.Client == b.At.Client && a.kind == b.kind && a.batch == b.batch && p.mayGoTogether() && other.mayGoTogether()
}

// mayGoTogether reports whether one script can take it with others. Replicas are waited for by each itself.
func (p *Primitive) mayGoTogether() bool {
	return p.Queue.mayGoTogether() && !p.Shared && p.Queue.At.Client.Options.Replicas == 0
}

// mayGoTogether reports whether one script can acquire several primitives of its kind. Such scripts cannot take
// turns with Redisson.
func (q *Queue) mayGoTogether() bool { return q.kind.Together != nil && !q.At.Client.Options.Redisson }

// AcquireTogether makes one attempt for primitives that fit into one basket, at most [lua.BasketLimit] of
// them. With all it takes all or none. Else it takes the locks before the first that is not free. It returns
// the holds, whose contexts are derived from parent. next is the first lock that was not free, or the first of
// all when one script cannot take them. Ask for it alone: the script's no may be out of date, its own
// acquire's is not. AcquireTogether does not wait, whatever a says.
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
			return nil, 0, nil // perhaps because of one of them, or because their slot is moving
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

// failure is the first that has failed, and not because somebody else has it.
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
			discardFrom(0, tenures, make([]error, len(tenures))) // nothing was sent of them
			return nil
		}
		// The script writes no demand but the lease. So Redis does not know that the lock may linger, and no
		// client would tell us that it wants the lock. That is why it does not linger.
		t.waiter.Demand = lua.Demand{}
		tenures = append(tenures, t)
	}
	return tenures
}

// takeTogether asks for all with one command. It returns what came of each, and how many were free before one
// that was not.
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

// part is what the scripts of a basket are told of the tenure.
func (t *tenure) part() lua.Part {
	return lua.Part{Keys: t.queue.At.Keys, Owner: t.waiter.Owner, Lease: session.Milliseconds(t.waiter.Lease), Seen: t.queue.At.Floor.Load()}
}

// holdPrefix makes holds of the tenures before the first that has none, and gives back the others.
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

// discardFrom gives back the grants of tenures[i:]. None of them is a hold yet. errs has the reason where a tenure
// was granted nothing.
func discardFrom(i int, tenures []*tenure, errs []error) {
	for ; i < len(tenures); i++ {
		if errs[i] == nil {
			tenures[i].cancel()
		}
	}
}
