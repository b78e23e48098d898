package core

import (
	"context"
	"errors"
	"fmt"
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
	limited, cancel := context.WithTimeout(ctx, p.resource.client.options.CommandTimeout)
	defer cancel()
	return p.acquire(ctx, limited, permits, true)
}

// tryFor waits for d at most.
func (p *primitive) tryFor(ctx context.Context, permits int, d time.Duration) (*Hold, error) {
	if d <= 0 {
		return nil, named(p.name, invalid("the wait must be more than 0, not %v", d))
	}
	limited, cancel := context.WithTimeoutCause(ctx, d, ErrNotAcquired)
	defer cancel()
	return p.acquire(ctx, limited, permits, false)
}

func guard(ctx context.Context, hold *Hold, err error, f func(context.Context, *Hold) error) (result error) {
	if err != nil {
		return err
	}
	defer func() { result = errors.Join(result, hold.Unlock(ctx)) }()
	return f(hold.Context(), hold)
}

// acquire waits until waits ends. The hold's context is derived from parent.
func (p *primitive) acquire(parent, waits context.Context, permits int, try bool) (*Hold, error) {
	hold, err := p.begin(parent, try)
	if hold != nil || err != nil {
		return hold, err
	}
	if p.delegate && !try {
		hold, err = p.inLine(parent, waits)
	} else {
		hold, err = p.compete(parent, waits, try, time.Now(), p.newTenure(permits, false))
	}
	p.leave(try)
	return hold, err
}

// leave ends what begin began.
func (p *primitive) leave(try bool) {
	p.resource.exit()
	if !try {
		p.resource.room.Inside.Add(-1)
	}
}

// inLine waits for its turn in the process, and goes on with what was left to it.
func (p *primitive) inLine(parent, waits context.Context) (*Hold, error) {
	began := time.Now()
	left, err := p.resource.line.Enter(waits, p.resource.client.closing)
	if err != nil {
		left.dispose()
		return nil, p.failed(parent, waits, err)
	}
	if left != nil {
		if hold := left.next(parent, p.terms, began); hold != nil {
			return hold, nil
		}
	}
	return p.compete(parent, waits, false, began, p.follow(left))
}

// compete acquires in Redis, with t first.
//
//go:noinline
func (p *primitive) compete(parent, waits context.Context, try bool, began time.Time, t *tenure) (*Hold, error) {
	delegate := p.delegate && !try
	for t != nil {
		permits := t.permits
		if err := p.resource.room.Acquire(waits, &t.waiter, try); err != nil {
			return nil, p.failed(parent, waits, err)
		}
		err := t.replicate(waits)
		if err == nil {
			if hold := t.hold(parent, p.terms, began); hold != nil {
				return hold, nil
			}
		} else {
			p.resource.room.Abandon(&t.waiter)
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
	if !try && r.room.Inside.Add(1) > int64(c.options.MaxWaiters) {
		r.room.Inside.Add(-1)
		return nil, named(p.name, ErrTooManyWaiters)
	}
	r.enter()
	return nil, nil //nolint:nilnil // go on
}

// failed is the error of an attempt that ended: the server's answer if there was one, else what ended it, with the reason
// why Redis did not answer.
func (p *primitive) failed(parent, waits context.Context, err error) error {
	var away *wait.AwayError
	last := p.resource.health().Away()
	if errors.As(err, &away) {
		last = away.Last
	}
	switch {
	case errors.Is(err, ErrClosed) && p.resource.client.closing.Err() != nil:
		return named(p.name, ErrClosed)
	case away == nil && !errors.Is(err, context.Cause(waits)):
		return named(p.name, public(err))
	case parent.Err() != nil:
		err = ended(parent)
	case errors.Is(context.Cause(waits), ErrNotAcquired):
		err = ErrNotAcquired
	default:
		return named(p.name, errors.Join(fmt.Errorf("%w: no answer within the command timeout", ErrUnavailable), last))
	}
	if last != nil {
		err = errors.Join(err, ErrUnavailable, last)
	}
	return named(p.name, err)
}

var _ wait.Server = (*resource)(nil)
var _ lease.Renewer = renewer{}
