package core

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// primitive is what all that grants has: a name on a client, and the terms on which it is acquired.
type primitive struct {
	resource *resource
	name     string
	terms    terms
	delegate bool   // one goroutine of the client queues in Redis at a time, and the others behind it in the process
	flags    string // of a semaphore's demands
}

func newPrimitive(c *Client, family lua.Family, name string, set []LockOption) (p primitive, err error) {
	defer func() {
		if err != nil {
			err = named(name, err)
		}
	}()
	if c == nil {
		return p, invalid("the client is nil")
	}
	if name == "" {
		return p, invalid("%w: it is empty", lua.ErrName)
	}
	var o LockOptions
	for _, option := range set {
		if option != nil {
			option(&o)
		}
	}
	p.name = name
	if p.terms, err = o.terms(c.options.Lease); err != nil {
		return p, err
	}
	if c.options.Replicas > 0 && c.options.ReplicaTimeout >= p.terms.lease {
		return p, invalid("the lease must be longer than what replicas may take, not %v and %v", p.terms.lease, c.options.ReplicaTimeout)
	}
	p.resource, err = c.resource(family, name)
	return p, err
}

// try makes one attempt.
func (p *primitive) try(ctx context.Context, permits int) (*Hold, error) {
	limited, cancel := p.resource.client.impatient(ctx)
	defer cancel()
	return p.acquire(ctx, limited, permits, true)
}

// tryFor waits for d at most.
func (p *primitive) tryFor(ctx context.Context, permits int, d time.Duration) (*Hold, error) {
	limited, cancel, err := p.within(ctx, d)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return p.acquire(ctx, limited, permits, false)
}

// impatient is the context of an attempt that does not wait.
func (c *Client) impatient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.options.CommandTimeout, errTimedOut)
}

// within is the context of a wait of d at most. Where ctx ends by then there is no second deadline: it is the
// one that ends the wait.
func (p *primitive) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc, error) {
	if d <= 0 {
		return nil, nil, named(p.name, invalid("the wait must be more than 0, not %v", d))
	}
	end := time.Now().Add(d)
	if deadline, ok := ctx.Deadline(); ok && !deadline.After(end) {
		return ctx, func() {}, nil
	}
	limited, cancel := context.WithDeadlineCause(ctx, end, errWaited)
	return limited, cancel, nil
}

// acquire waits until waits ends. The hold's context is derived from parent.
func (p *primitive) acquire(parent, waits context.Context, permits int, try bool) (*Hold, error) {
	began := time.Now()
	hold, err := p.begin(parent, try)
	if hold != nil {
		return hold, nil // it re-enters, and nobody is told
	}
	if err == nil {
		if p.delegate && !try {
			hold, err = p.inLine(parent, waits)
		} else {
			hold, err = p.compete(parent, waits, try, p.newTenure(permits, false))
		}
		p.leave(try)
	}
	if err != nil {
		p.attempted(parent, permits, began, err)
		return nil, err
	}
	hold.acquired(began)
	return hold, nil
}

// leave ends what begin began.
func (p *primitive) leave(try bool) {
	p.resource.exit()
	if !try {
		p.resource.waiters.Callers.Add(-1)
	}
}

// inLine waits for its turn in the process, and goes on with what was left to it.
func (p *primitive) inLine(parent, waits context.Context) (*Hold, error) {
	left, err := p.resource.line.Enter(waits, p.resource.client.closing)
	if err != nil {
		left.dispose()
		return nil, p.failed(parent, waits, err)
	}
	if left != nil {
		if hold := left.next(parent, p.terms); hold != nil {
			return hold, nil
		}
	}
	return p.compete(parent, waits, false, p.follow(left))
}

// compete acquires in Redis, with t first.
//
//go:noinline
func (p *primitive) compete(parent, waits context.Context, try bool, t *tenure) (*Hold, error) {
	delegate := p.delegate && !try
	for t != nil {
		t.asks(parent)
		permits := t.permits
		if err := p.resource.waiters.Acquire(waits, &t.waiter, try); err != nil {
			return nil, p.failed(parent, waits, err)
		}
		err := t.replicate(waits)
		if err == nil {
			if hold := t.hold(parent, p.terms); hold != nil {
				return hold, nil
			}
		} else {
			p.resource.waiters.Cancel(&t.waiter)
			if !errors.Is(err, errGone) {
				if delegate {
					p.resource.line.Pass(nil)
				}
				if errors.Is(err, errEnded) {
					return nil, p.failed(parent, waits, context.Cause(waits))
				}
				return nil, named(p.name, err)
			}
		}
		t = p.newTenure(permits, delegate)
	}
	if delegate {
		p.resource.line.Pass(nil)
	}
	return nil, named(p.name, ErrClosed)
}

// begin checks what can be known at once, re-enters, and counts who goes on.
func (p *primitive) begin(parent context.Context, try bool) (*Hold, error) {
	r, c := p.resource, p.resource.client
	if c.closing.Err() != nil {
		return nil, named(p.name, ErrClosed)
	}
	if parent.Err() != nil {
		return nil, named(p.name, ended(parent))
	}
	if outer, ok := parent.Value(r).(*Hold); ok && r.exclusive() && outer.Held() {
		if p.terms.withoutReentry {
			return nil, named(p.name, ErrReentered)
		}
		if again := outer.turn.reenter(parent); again != nil {
			return again, nil
		}
	}
	if !try && r.waiters.Callers.Add(1) > int64(c.options.MaxWaiters) {
		r.waiters.Callers.Add(-1)
		return nil, named(p.name, ErrTooManyWaiters)
	}
	r.enter()
	return nil, nil //nolint:nilnil // go on
}

// The causes of waits that end before the caller's context does.
var (
	errWaited   = errors.New("the time to wait is over")
	errTimedOut = errors.New("no answer within the command timeout")
)

// failed is the error of an attempt that ended: the server's answer if there was one, else what ended it,
// with the reason why Redis did not answer. Whose context it was is decided by what ended first, and not by
// what has ended by now.
func (p *primitive) failed(parent, waits context.Context, err error) error {
	r, cause := p.resource, context.Cause(waits)
	var away *wait.AwayError
	last := r.health().Away()
	if errors.As(err, &away) {
		last = away.Last
	}
	switch {
	case errors.Is(err, ErrClosed) && r.client.closing.Err() != nil:
		return named(p.name, ErrClosed)
	case away == nil && !errors.Is(err, cause):
		return named(p.name, public(r.explained(parent, err)))
	case cause == errWaited: //nolint:errorlint // it is nobody else's
		err = ErrNotAcquired
	case cause == errTimedOut || parent.Err() == nil: //nolint:errorlint // the same
		return named(p.name, join(unavailable(errTimedOut), lua.Quiet(last)))
	default:
		err = ended(parent)
	}
	if last != nil {
		err = join(err, unavailable(last))
	}
	return named(p.name, err)
}

var _ wait.Server = (*resource)(nil)
var _ lease.Renewer = renewer{}
