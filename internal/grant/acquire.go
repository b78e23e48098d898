package grant

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// Try makes one attempt.
func (p *Primitive) Try(ctx context.Context, permits int) (*Hold, error) {
	limited, cancel := Impatient(ctx, p.Queue.At.Client)
	defer cancel()
	return p.Acquire(Attempt{Parent: ctx, Waits: limited, Permits: permits, Try: true})
}

// TryFor waits for d at most.
func (p *Primitive) TryFor(ctx context.Context, permits int, d time.Duration) (*Hold, error) {
	limited, cancel, err := Within(ctx, p.Name, d)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return p.Acquire(Attempt{Parent: ctx, Waits: limited, Permits: permits})
}

// Impatient returns the context of an attempt that waits for no holder. It leaves time only for Redis's answer and
// for replicas.
func Impatient(ctx context.Context, c *session.Client) (context.Context, context.CancelFunc) {
	limit := c.Options.CommandTimeout
	if c.Options.Replicas > 0 {
		limit += c.Options.ReplicaTimeout
	}
	return context.WithTimeoutCause(ctx, limit, errTimedOut)
}

// Within returns the context of a wait for the primitive called name. The wait lasts d at most. If ctx ends by then,
// Within sets no second deadline: ctx ends the wait.
func Within(ctx context.Context, name string, d time.Duration) (context.Context, context.CancelFunc, error) {
	if d <= 0 {
		return nil, nil, fail.Wrap(name, fail.Invalid("the wait must be more than 0, not %v", d))
	}
	end := time.Now().Add(d)
	if deadline, ok := ctx.Deadline(); ok && !deadline.After(end) {
		return ctx, func() {}, nil
	}
	limited, cancel := context.WithDeadlineCause(ctx, end, errWaited)
	return limited, cancel, nil
}

// Acquire makes an attempt.
//
// The stack of a sleeping goroutine is most of the cost of an idle waiter. So the code before the wait in Redis has
// returned before the goroutine sleeps, and the code after the wait has not begun.
func (p *Primitive) Acquire(a Attempt) (*Hold, error) {
	var c contender // filled in place: a literal would be on the stack twice
	c.Attempt, c.began = a, p.begins()
	hold, err := p.Reenter(c.Parent)
	if hold != nil {
		return hold, nil // re-entry calls no hook
	}
	if err == nil && p.Shared {
		hold = p.join(c.Parent, c.began)
	}
	slow := p.slowWait(&c.Attempt)
	switch {
	case err != nil || hold != nil:
	case p.terms.Detects && !c.Try:
		hold, err = p.awaitWatched(&c)
	default:
		hold, err = p.await(&c)
	}
	slow.End()
	if err != nil {
		return nil, p.attempted(&c, err)
	}
	acquired(hold, c.began, c.finishContention())
	return hold, nil
}

// attempted calls the hook for an attempt that failed with err. It returns err, with the holder if that is known.
//
//go:noinline
func (p *Primitive) attempted(c *contender, err error) error {
	if errors.Is(err, ErrSettled) {
		return err
	}
	contended := c.finishContention() // first: a late answer would call the Waiting hook while blame asks
	if !c.Quiet {
		err = p.blame(c, err)
	}
	p.Attempted(c.Parent, c.Permits, c.began, contended, err)
	return err
}

// await competes for a hold in Redis, unless c gets a hold inside this process.
func (p *Primitive) await(c *contender) (*Hold, error) {
	if err := p.enter(&c.Attempt); err != nil {
		return nil, err
	}
	defer p.leave(&c.Attempt)
	if hold, err := p.prepare(c); hold != nil || err != nil {
		return hold, err
	}
	return p.compete(c)
}

// prepare runs before c competes. It returns a hold or an error if c need not compete.
//
//go:noinline
func (p *Primitive) prepare(c *contender) (*Hold, error) {
	if p.terms.Lingers() && !p.Queue.Listening() {
		p.Queue.awaitHearing(c.Waits)
	}
	switch {
	case c.Try || !p.Delegate:
	case p.Queue.kind.Exclusive:
		return p.standInLine(c)
	default:
		g, err := p.standForPermits(c)
		return g.hold, err
	}
	if g, ok := p.takeParked(c.Parent); ok {
		return p.goOn(c, g), nil
	}
	if c.Try {
		if away := p.KnownOutage(); away != nil && c.part == nil { // one late server costs a redlock nothing
			return nil, away
		}
		p.Queue.awaitLeaving(c.Waits)
	}
	c.tenure = p.newTenure(c)
	if c.Try && c.tenure != nil {
		c.tenure.waiter.Patience = p.Queue.patience()
	}
	return nil, nil //nolint:nilnil // it competes
}

// KnownOutage is [session.Target.KnownOutage], wrapped with the primitive's name.
func (p *Primitive) KnownOutage() error {
	if away := p.Queue.At.KnownOutage(); away != nil {
		return fail.Wrap(p.Name, away)
	}
	return nil
}

// leave ends what enter began.
func (p *Primitive) leave(a *Attempt) {
	p.Queue.exit()
	if !a.Try {
		p.Queue.waiters.Callers.Add(-1)
	}
}

// standInLine waits in the line for a hold, or for the turn to compete.
func (p *Primitive) standInLine(c *contender) (*Hold, error) {
	g, err := p.enterLine(c)
	if err != nil {
		return nil, p.failed(&c.Attempt, err)
	}
	return p.goOn(c, g), nil
}

// enterLine waits in the line for a hold, or for the turn. The lease may be over when the goroutine gets the hold:
// the process may have been stopped. Then the goroutine enters the line anew.
func (p *Primitive) enterLine(c *contender) (gift, error) {
	for {
		g, err := p.Queue.enterLine(c.Waits, wish{primitive: p, parent: c.Parent, permits: c.Permits}, p.inLine(c))
		if g.hold == nil {
			return g, err
		}
		u := turnOf(g.hold)
		u.had.Store(true)
		if u.tenure.item.Left() > 0 {
			return g, err
		}
		u.had.Store(false)
		g.hold.Look()
		u.undo()
	}
}

// goOn takes what c got in the line. It returns the hold in g, or gives c the turn to compete.
func (p *Primitive) goOn(c *contender, g gift) *Hold {
	if g.hold == nil {
		c.inTurn = true
		c.tenure = p.succeed(c, g.left)
	}
	return g.hold
}

// compete acquires in Redis.
//
//go:noinline
func (p *Primitive) compete(c *contender) (*Hold, error) {
	for c.tenure != nil {
		t := c.tenure
		c.Permits = t.permits
		if p.Shared {
			t.prepareToShare(&c.Attempt)
		}
		if err := p.Queue.waiters.Wait(c.Waits, &t.waiter); err != nil {
			return nil, p.failed(&c.Attempt, err)
		}
		if hold, err := p.holdOf(c); hold != nil || err != nil {
			return hold, err
		}
		c.finishContention()
		if err := p.tooLate(c); err != nil {
			return nil, err
		}
		c.tenure = p.newTenure(c) // the grant was over before it became a hold
	}
	if c.inTurn {
		p.Queue.passOn(p.Shared)
	}
	return nil, fail.Wrap(p.Name, fail.ErrClosed)
}

// holdOf makes a hold of a granted tenure. It returns neither a hold nor an error if the grant is useless: its lease
// has ended, Redis has revoked the grant, another hold here has a greater token, or the client is closing. Then the
// goroutine keeps its turn in the line, if it had the turn. Before holdOf returns an error, it passes the turn on.
//
//go:noinline
func (p *Primitive) holdOf(c *contender) (*Hold, error) {
	t := c.tenure
	err := t.replicate(c.Waits)
	if err == nil {
		parent := c.Parent
		if c.part != nil {
			parent = context.Background() // c.Parent is the context of the redlock's attempt, and ends with it
		}
		return t.hold(parent, &p.terms), nil
	}
	t.cancel()
	if errors.Is(err, errGone) {
		return nil, nil //nolint:nilnil // as it says
	}
	if c.inTurn {
		p.Queue.passOn(p.Shared)
	}
	if errors.Is(err, errEnded) {
		return nil, p.failed(&c.Attempt, context.Cause(c.Waits))
	}
	return nil, fail.Wrap(p.Name, err)
}

// enter makes the checks that need no wait. If they pass, it counts the goroutine until leave.
func (p *Primitive) enter(a *Attempt) error {
	q, c := p.Queue, p.Queue.At.Client
	switch {
	case c.Closing.Err() != nil:
		return fail.Wrap(p.Name, fail.ErrClosed)
	case a.Parent.Err() != nil:
		return fail.Wrap(p.Name, fail.ContextError(a.Parent))
	case !a.Try && q.waiters.Callers.Add(1) > int64(c.Options.MaxWaiters):
		q.waiters.Callers.Add(-1)
		return fail.Wrap(p.Name, fail.ErrTooManyWaiters)
	}
	q.enter()
	q.comes(p.Shared)
	return nil
}

// Reenter returns a further hold if parent is the context of a hold of this name, else nil. The holder of an
// exclusive hold may re-enter it for a shared hold.
func (p *Primitive) Reenter(parent context.Context) (*Hold, error) {
	outer, ok := parent.Value(p.Queue).(*Hold)
	if !ok || !p.Queue.kind.Exclusive || p.Queue.At.Client.Closing.Err() != nil || parent.Err() != nil || !outer.Held() {
		return nil, nil //nolint:nilnil,nilerr // there is nothing to re-enter, which is no error
	}
	hold, err := turnOf(outer).reenter(parent, p)
	if err != nil {
		return nil, fail.Wrap(p.Name, err)
	}
	return hold, nil
}

// The causes of waits that end before the caller's context does.
var (
	errWaited   = errors.New("the time to wait is over")
	errTimedOut = errors.New("no answer within the command timeout")

	// ErrOther ends the wait for a lock that is useless without another lock.
	ErrOther = errors.New("a lock was lost while another one was waited for")
)

// failed returns the error of an attempt that ended. If the server answered, failed returns the server's answer.
// Otherwise the error says what ended the attempt, and why Redis did not answer. The error blames the context that
// ended first, even if other contexts have ended by now.
func (p *Primitive) failed(a *Attempt, err error) error {
	r, cause := p.Queue, context.Cause(a.Waits)
	var away *wait.AwayError
	last := r.At.Away(r.hears())
	if errors.As(err, &away) {
		last = away.Last
	}
	switch {
	case errors.Is(err, fail.ErrClosed) && r.At.Client.Closing.Err() != nil:
		return fail.Wrap(p.Name, fail.ErrClosed)
	case errors.Is(err, wait.ErrBusy):
		return fail.Wrap(p.Name, fail.ErrNotAcquired)
	case away == nil && !errors.Is(err, cause):
		return fail.Wrap(p.Name, fail.WithSentinel(r.At.Explain(a.Parent, err)))
	default:
		return EndOf(p.Name, a.Parent, a.Waits, last)
	}
}

// EndOf returns the error of an attempt whose context, waits, has ended. waits is parent, or is derived from parent.
// last is why Redis did not answer; nil if Redis did.
func EndOf(name string, parent, waits context.Context, last error) (err error) {
	switch cause := context.Cause(waits); {
	case cause == errWaited: //nolint:errorlint // no other wait has it
		err = fail.ErrNotAcquired
	case errors.Is(cause, fail.ErrDeadlock), cause == ErrSettled: //nolint:errorlint // the same
		return fail.Wrap(name, cause)
	case cause == ErrOther: //nolint:errorlint // the same
		err = fail.Join(fail.ErrNotAcquired, cause)
	case cause == errTimedOut || parent.Err() == nil: //nolint:errorlint // the same
		return fail.Wrap(name, fail.Unavailable(fail.Join(errTimedOut, last)))
	default:
		err = fail.ContextError(parent)
	}
	if last != nil {
		err = fail.Join(err, fail.Unavailable(last))
	}
	return fail.Wrap(name, err)
}
