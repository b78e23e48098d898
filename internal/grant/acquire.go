package grant

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// Try makes one attempt.
func (p *Primitive) Try(ctx context.Context, permits int) (*Hold, error) {
	limited, cancel := Impatient(ctx, p.Queue.Client)
	defer cancel()
	return p.Acquire(ctx, limited, permits, true)
}

// TryFor waits for d at most.
func (p *Primitive) TryFor(ctx context.Context, permits int, d time.Duration) (*Hold, error) {
	limited, cancel, err := Within(ctx, p.Name, d)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return p.Acquire(ctx, limited, permits, false)
}

// Impatient is the context of an attempt that does not wait.
func Impatient(ctx context.Context, c *session.Client) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.Options.CommandTimeout, errTimedOut)
}

// Within is the context of a wait of d at most for what has that name. Where ctx ends by then there is no
// second deadline: it is the one that ends the wait.
func Within(ctx context.Context, name string, d time.Duration) (context.Context, context.CancelFunc, error) {
	if d <= 0 {
		return nil, nil, session.Wrap(name, session.Invalid("the wait must be more than 0, not %v", d))
	}
	end := time.Now().Add(d)
	if deadline, ok := ctx.Deadline(); ok && !deadline.After(end) {
		return ctx, func() {}, nil
	}
	limited, cancel := context.WithDeadlineCause(ctx, end, errWaited)
	return limited, cancel, nil
}

// Acquire waits until waits ends. The hold's context is derived from parent.
func (p *Primitive) Acquire(parent, waits context.Context, permits int, try bool) (*Hold, error) {
	began := p.begins()
	hold, err := p.Reenter(parent)
	if hold != nil {
		return hold, nil // no hook is called for it
	}
	if err == nil && p.Shared {
		hold = p.join(parent, began, false)
	}
	if err == nil && hold == nil {
		hold, err = p.await(parent, waits, permits, try)
	}
	if err != nil {
		p.Attempted(parent, permits, began, err)
		return nil, err
	}
	hold.acquired(began)
	return hold, nil
}

func (p *Primitive) await(parent, waits context.Context, permits int, try bool) (*Hold, error) {
	if err := p.enter(parent, try); err != nil {
		return nil, err
	}
	defer p.leave(try)
	if p.terms.lingers() && !p.Queue.Listening() {
		p.Queue.awaitHearing(waits)
	}
	switch {
	case try || !p.Delegate:
	case p.Queue.kind.Exclusive:
		return p.standInLine(parent, waits)
	default:
		return p.standForPermits(parent, waits, permits)
	}
	if left, ok := p.takeParked(); ok {
		return p.goOn(parent, waits, try, left)
	}
	if try {
		p.Queue.awaitLeaving(waits)
	}
	t := p.newTenure(permits, false)
	if try && t != nil {
		t.waiter.Patience = p.Queue.patience()
	}
	return p.compete(parent, waits, try, false, t)
}

// leave ends what enter began.
func (p *Primitive) leave(try bool) {
	p.Queue.exit()
	if !try {
		p.Queue.waiters.Callers.Add(-1)
	}
}

// standInLine waits for its turn in the process, and goes on with what was left to it.
func (p *Primitive) standInLine(parent, waits context.Context) (*Hold, error) {
	line := &p.Queue.half(p.Shared).line
	left, err := line.Enter(waits)
	if err != nil {
		left.discard()
		return nil, p.failed(parent, waits, err)
	}
	if p.Shared {
		if hold := p.join(parent, time.Now(), true); hold != nil {
			left.discard() // what its delegate has left is of no use
			line.Pass(nil)
			return hold, nil
		}
	}
	return p.goOn(parent, waits, false, left)
}

// goOn has the turn of the line, and goes on with what was left there.
func (p *Primitive) goOn(parent, waits context.Context, try bool, left *tenure) (*Hold, error) {
	if left != nil && !p.Shared {
		if hold := left.next(parent, p.terms); hold != nil {
			return hold, nil
		}
	}
	return p.compete(parent, waits, try, true, p.succeed(left))
}

// compete acquires in Redis, with t first. inTurn says that the caller has the turn of the line.
//
//go:noinline
func (p *Primitive) compete(parent, waits context.Context, try, inTurn bool, t *tenure) (*Hold, error) {
	for t != nil {
		t.asks(parent)
		permits := t.permits
		if p.Shared {
			t.prepareToShare(waits, try)
		}
		if err := p.Queue.waiters.Wait(waits, &t.waiter, try); err != nil {
			return nil, p.failed(parent, waits, err)
		}
		switch err := t.replicate(waits); {
		case err == nil:
			if hold := t.hold(parent, p.terms); hold != nil {
				return hold, nil
			}
		case errors.Is(err, errGone):
			p.Queue.waiters.Cancel(&t.waiter)
		default:
			p.Queue.waiters.Cancel(&t.waiter)
			if inTurn {
				p.Queue.endTurn(p.Shared, nil)
			}
			if errors.Is(err, errEnded) {
				return nil, p.failed(parent, waits, context.Cause(waits))
			}
			return nil, session.Wrap(p.Name, err)
		}
		t = p.newTenure(permits, inTurn) // its lease was over before it was a hold
	}
	if inTurn {
		p.Queue.endTurn(p.Shared, nil)
	}
	return nil, session.Wrap(p.Name, session.ErrClosed)
}

// enter checks what can be known at once, and counts a goroutine that goes on, until leave.
func (p *Primitive) enter(parent context.Context, try bool) error {
	r, c := p.Queue, p.Queue.Client
	switch {
	case c.Closing.Err() != nil:
		return session.Wrap(p.Name, session.ErrClosed)
	case parent.Err() != nil:
		return session.Wrap(p.Name, session.ContextError(parent))
	case !try && r.waiters.Callers.Add(1) > int64(c.Options.MaxWaiters):
		r.waiters.Callers.Add(-1)
		return session.Wrap(p.Name, session.ErrTooManyWaiters)
	}
	r.enter()
	return nil
}

// Reenter returns a further hold if parent is the context of one of this name, and nil if it is not. Who
// holds alone may also hold together with others.
func (p *Primitive) Reenter(parent context.Context) (*Hold, error) {
	outer, ok := parent.Value(p.Queue).(*Hold)
	if !ok || !p.Queue.kind.Exclusive || p.Queue.Client.Closing.Err() != nil || parent.Err() != nil || !outer.Held() {
		return nil, nil //nolint:nilnil,nilerr // there is nothing to re-enter, which is no error
	}
	hold, err := outer.turn().reenter(parent, p)
	if err != nil {
		return nil, session.Wrap(p.Name, err)
	}
	return hold, nil
}

// The causes of waits that end before the caller's context does.
var (
	errWaited   = errors.New("the time to wait is over")
	errTimedOut = errors.New("no answer within the command timeout")

	// ErrOther ends the wait for a lock that is of no use without another one.
	ErrOther = errors.New("a lock was lost while another one was waited for")
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
	default:
		return EndOf(p.Name, parent, waits, last)
	}
}

// EndOf is the error of an attempt that ended because waits did, which is parent or derived from it. last
// is why Redis did not answer; nil when it did.
func EndOf(name string, parent, waits context.Context, last error) (err error) {
	switch cause := context.Cause(waits); {
	case cause == errWaited: //nolint:errorlint // it is nobody else's
		err = session.ErrNotAcquired
	case cause == ErrOther: //nolint:errorlint // the same
		err = session.Join(session.ErrNotAcquired, cause)
	case cause == errTimedOut || parent.Err() == nil: //nolint:errorlint // the same
		return session.Wrap(name, session.Unavailable(session.Join(errTimedOut, last)))
	default:
		err = session.ContextError(parent)
	}
	if last != nil {
		err = session.Join(err, session.Unavailable(last))
	}
	return session.Wrap(name, err)
}

var _ wait.Server = (*Queue)(nil)
