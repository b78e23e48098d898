package grant

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// A basket is several locks of one client and one slot that one script takes, and one gives back. Each has a
// tenure of its own, which is renewed, lost and released like any other.

// FitsInto reports whether one script can take both.
func (p *Primitive) FitsInto(other *Primitive) bool {
	a, b := p.Queue, other.Queue
	return a.Client == b.Client && a.kind == b.kind && a.batch == b.batch && p.together() != nil
}

// together are the commands for several; nil where each must be taken by itself.
func (p *Primitive) together() Together {
	commands, _ := p.Queue.Commands.(Together)
	if p.Shared || p.Queue.Client.Options.Replicas > 0 {
		return nil
	}
	return commands
}

// AcquireTogether makes one attempt for primitives that fit into one basket, at most [lua.BasketLimit] of
// them. With all it takes all or none. Else it takes those before the first that somebody else holds or waits
// for, and that is no error. The contexts of the holds are derived from parent.
func AcquireTogether(parent, waits context.Context, ps []*Primitive, all bool) ([]*Hold, error) {
	began := time.Now()
	for i, p := range ps {
		if err := p.enter(parent, true); err != nil {
			leaveAll(ps[:i])
			p.Attempted(parent, 0, began, err)
			return nil, err
		}
	}
	defer leaveAll(ps)
	tenures, err := newTenures(parent, ps)
	if err != nil {
		return nil, err
	}
	errs, free := takeTogether(waits, ps[0].together(), tenures, all)
	failed := free // of those that may have
	for i, err := range errs {
		if err != nil && !errors.Is(err, wait.ErrBusy) {
			failed = i
			break
		}
	}
	if failed < len(ps) && errs[failed] != nil && (all || !errors.Is(errs[failed], wait.ErrBusy)) {
		discardFrom(0, tenures, errs)
		p := ps[failed]
		err := p.failed(parent, waits, errs[failed])
		if !errors.Is(err, lua.ErrBasket) { // else they are taken one by one
			p.Attempted(parent, 0, began, err)
		}
		return nil, err
	}
	holds := holdPrefix(parent, ps, tenures, errs)
	if all && len(holds) < len(ps) {
		UnlockTogether(context.WithoutCancel(parent), holds)
		return nil, session.Wrap(ps[len(holds)].Name, session.ErrNotAcquired)
	}
	for _, h := range holds {
		h.acquired(began)
	}
	return holds, nil
}

func leaveAll(ps []*Primitive) {
	for _, p := range ps {
		p.leave(true)
	}
}

func newTenures(parent context.Context, ps []*Primitive) ([]*tenure, error) {
	tenures := make([]*tenure, 0, len(ps))
	for _, p := range ps {
		t := p.newTenure(0, false)
		if t == nil {
			discardFrom(0, tenures, make([]error, len(tenures))) // nothing was sent of them
			return nil, session.Wrap(p.Name, session.ErrClosed)
		}
		t.asks(parent)
		tenures = append(tenures, t)
	}
	return tenures, nil
}

// takeTogether asks for all with one command. It returns what came of each, and how many were free before one
// that was not.
func takeTogether(waits context.Context, commands Together, tenures []*tenure, all bool) (errs []error, free int) {
	members, parts := make([]wait.Member, len(tenures)), make([]lua.Part, len(tenures))
	for i, t := range tenures {
		members[i] = wait.Member{Waiters: t.waiters, Waiter: &t.waiter}
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
			t.heed(ctx, &t.waiter, replies[i], sent, lua.Try)
		}
		return replies, nil
	})
	return errs, free
}

// part is what the scripts of a basket are told of the tenure.
func (t *tenure) part() lua.Part {
	return lua.Part{Keys: t.Keys, Owner: t.waiter.Owner, Lease: session.Milliseconds(t.waiter.Lease), Seen: t.Floor.Load()}
}

// holdPrefix makes holds of the tenures before the first that has none, and gives back the others.
func holdPrefix(parent context.Context, ps []*Primitive, tenures []*tenure, errs []error) []*Hold {
	holds := make([]*Hold, 0, len(ps))
	for i, t := range tenures {
		if errs[i] == nil {
			if h := t.hold(parent, ps[i].terms); h != nil {
				holds = append(holds, h)
				continue
			}
		}
		discardFrom(i+1, tenures, errs)
		break
	}
	return holds
}

// discardFrom gives back what was granted to the tenures from the i-th on, and is no hold yet.
func discardFrom(i int, tenures []*tenure, errs []error) {
	for ; i < len(tenures); i++ {
		if errs[i] == nil {
			tenures[i].waiters.Cancel(&tenures[i].waiter)
		}
	}
}
