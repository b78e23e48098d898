package grant

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// primitive is what all that grants has: a name on a client, and the terms on which it is acquired.
type Primitive struct {
	Queue    *Queue
	Name     string
	terms    terms
	Delegate bool                     // one goroutine of the client queues in Redis at a time, and the others behind it in the process
	Demand   func(permits int) string // what Redis is asked for; nil: the whole
}

func NewPrimitive(c *session.Client, kind *Kind, name string, set []Option) (p Primitive, err error) {
	defer func() {
		if err != nil {
			err = session.Wrap(name, err)
		}
	}()
	if c == nil {
		return p, session.Invalid("the client is nil")
	}
	if name == "" {
		return p, session.Invalid("%w: it is empty", lua.ErrName)
	}
	var o Options
	for _, option := range set {
		if option != nil {
			option(&o)
		}
	}
	p.Name = name
	if p.terms, err = o.terms(c.Options.Lease); err != nil {
		return p, err
	}
	if c.Options.Replicas > 0 && c.Options.ReplicaTimeout >= p.terms.lease {
		return p, session.Invalid("the lease must be longer than what replicas may take, not %v and %v", p.terms.lease, c.Options.ReplicaTimeout)
	}
	p.Queue, err = QueueOf(c, kind, name)
	return p, err
}

// try makes one attempt.
func (p *Primitive) Try(ctx context.Context, permits int) (*Hold, error) {
	limited, cancel := p.Impatient(ctx)
	defer cancel()
	return p.Acquire(ctx, limited, permits, true)
}

// tryFor waits for d at most.
func (p *Primitive) TryFor(ctx context.Context, permits int, d time.Duration) (*Hold, error) {
	limited, cancel, err := p.Within(ctx, d)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return p.Acquire(ctx, limited, permits, false)
}

// impatient is the context of an attempt that does not wait.
func (p *Primitive) Impatient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.Queue.Client.Options.CommandTimeout, errTimedOut)
}

// within is the context of a wait of d at most. Where ctx ends by then there is no second deadline: it is the
// one that ends the wait.
func (p *Primitive) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc, error) {
	if d <= 0 {
		return nil, nil, session.Wrap(p.Name, session.Invalid("the wait must be more than 0, not %v", d))
	}
	end := time.Now().Add(d)
	if deadline, ok := ctx.Deadline(); ok && !deadline.After(end) {
		return ctx, func() {}, nil
	}
	limited, cancel := context.WithDeadlineCause(ctx, end, errWaited)
	return limited, cancel, nil
}

// acquire waits until waits ends. The hold's context is derived from parent.
func (p *Primitive) Acquire(parent, waits context.Context, permits int, try bool) (*Hold, error) {
	began := time.Now()
	hold, err := p.begin(parent, try)
	if hold != nil {
		return hold, nil // it re-enters, and nobody is told
	}
	if err == nil {
		if p.Delegate && !try {
			hold, err = p.inLine(parent, waits)
		} else {
			hold, err = p.compete(parent, waits, try, p.newTenure(permits, false))
		}
		p.leave(try)
	}
	if err != nil {
		p.Attempted(parent, permits, began, err)
		return nil, err
	}
	hold.acquired(began)
	return hold, nil
}

// leave ends what begin began.
func (p *Primitive) leave(try bool) {
	p.Queue.exit()
	if !try {
		p.Queue.room.Inside.Add(-1)
	}
}

// inLine waits for its turn in the process, and goes on with what was left to it.
func (p *Primitive) inLine(parent, waits context.Context) (*Hold, error) {
	left, err := p.Queue.line.Enter(waits, p.Queue.Client.Closing)
	if err != nil {
		left.discard()
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
func (p *Primitive) compete(parent, waits context.Context, try bool, t *tenure) (*Hold, error) {
	delegate := p.Delegate && !try
	for t != nil {
		t.asks(parent)
		permits := t.permits
		if err := p.Queue.room.Acquire(waits, &t.waiter, try); err != nil {
			return nil, p.failed(parent, waits, err)
		}
		err := t.replicate(waits)
		if err == nil {
			if hold := t.hold(parent, p.terms); hold != nil {
				return hold, nil
			}
		} else {
			p.Queue.room.Abandon(&t.waiter)
			if !errors.Is(err, errGone) {
				if delegate {
					p.Queue.line.Pass(nil)
				}
				if errors.Is(err, errEnded) {
					return nil, p.failed(parent, waits, context.Cause(waits))
				}
				return nil, session.Wrap(p.Name, err)
			}
		}
		t = p.newTenure(permits, delegate)
	}
	if delegate {
		p.Queue.line.Pass(nil)
	}
	return nil, session.Wrap(p.Name, session.ErrClosed)
}

// begin checks what can be known at once, re-enters, and counts who goes on.
func (p *Primitive) begin(parent context.Context, try bool) (*Hold, error) {
	r, c := p.Queue, p.Queue.Client
	if c.Closing.Err() != nil {
		return nil, session.Wrap(p.Name, session.ErrClosed)
	}
	if parent.Err() != nil {
		return nil, session.Wrap(p.Name, session.ContextError(parent))
	}
	if outer, ok := parent.Value(r).(*Hold); ok && r.kind.Exclusive && outer.Held() {
		if p.terms.withoutReentry {
			return nil, session.Wrap(p.Name, session.ErrReentered)
		}
		if again := outer.turn.reenter(parent); again != nil {
			return again, nil
		}
	}
	if !try && r.room.Inside.Add(1) > int64(c.Options.MaxWaiters) {
		r.room.Inside.Add(-1)
		return nil, session.Wrap(p.Name, session.ErrTooManyWaiters)
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
func (p *Primitive) failed(parent, waits context.Context, err error) error {
	r, cause := p.Queue, context.Cause(waits)
	var away *wait.AwayError
	last := r.Health().Away()
	if errors.As(err, &away) {
		last = away.Last
	}
	switch {
	case errors.Is(err, session.ErrClosed) && r.Client.Closing.Err() != nil:
		return session.Wrap(p.Name, session.ErrClosed)
	case errors.Is(err, wait.ErrBusy):
		return session.Wrap(p.Name, session.ErrNotAcquired)
	case away == nil && !errors.Is(err, cause):
		return session.Wrap(p.Name, session.WithSentinel(r.Explain(parent, err)))
	case cause == errWaited: //nolint:errorlint // it is nobody else's
		err = session.ErrNotAcquired
	case cause == errTimedOut || parent.Err() == nil: //nolint:errorlint // the same
		return session.Wrap(p.Name, session.Join(session.Unavailable(errTimedOut), lua.Quiet(last)))
	default:
		err = session.ContextError(parent)
	}
	if last != nil {
		err = session.Join(err, session.Unavailable(last))
	}
	return session.Wrap(p.Name, err)
}

var _ wait.Server = (*Queue)(nil)
