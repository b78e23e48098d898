package lock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// locks are the kind of all locks.
var kind = &grant.Kind{Family: lua.Locks, Exclusive: true, Commands: func(r *grant.Queue) grant.Commands { return lockCommands{r} }}

type lockCommands struct{ *grant.Queue }

func (l lockCommands) Acquire(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	return l.Client.Conn.Acquire(ctx, l.Keys, claim, l.Floor.Load(), mode)
}

func (l lockCommands) Offer(
	ctx context.Context, owner, entry string, used int64, claim lua.Claim, mode lua.Mode,
) (lua.Acquired, error) {
	return l.Client.Conn.Offer(ctx, l.Keys, owner, entry, used, claim, l.Floor.Load(), mode)
}

func (l lockCommands) Release(ctx context.Context, e lua.Ending, _ int, _ bool) (owned bool, err error) {
	return l.Client.Conn.Release(ctx, l.Keys, e, l.Floor.Load())
}

// Lock is the inside of rlock.Lock and fairlock.Lock.
type Lock struct{ p grant.Primitive }

// New returns the lock of a name. With delegate one goroutine of this client queues in Redis at a time, and the
// others behind it in the process.
func New(c *session.Client, name string, delegate bool, set []grant.Option) (*Lock, error) {
	p, err := grant.NewPrimitive(c, kind, name, set)
	p.Delegate = delegate
	if err != nil {
		return nil, err
	}
	return &Lock{p}, nil
}

// Name is the name without the client's prefix.
func (l *Lock) Name() string { return l.p.Name }

// Lock is documented by the lock packages, as are the methods that follow.
func (l *Lock) Lock(ctx context.Context) (*grant.Hold, error) {
	return l.p.Acquire(ctx, ctx, 0, false) // inlined: what an idle waiter has on its stack is most of its cost
}

// TryLock makes one attempt.
func (l *Lock) TryLock(ctx context.Context) (*grant.Hold, error) {
	return l.p.Try(ctx, 0)
}

// TryLockFor waits for d at most.
func (l *Lock) TryLockFor(ctx context.Context, d time.Duration) (*grant.Hold, error) {
	return l.p.TryFor(ctx, 0, d)
}

// Do locks, runs f and unlocks.
func (l *Lock) Do(ctx context.Context, f func(context.Context, *grant.Hold) error) error {
	hold, err := l.Lock(ctx)
	return grant.Guard(ctx, hold, err, f)
}

// TryDo is Do with TryLock.
func (l *Lock) TryDo(ctx context.Context, f func(context.Context, *grant.Hold) error) error {
	hold, err := l.TryLock(ctx)
	return grant.Guard(ctx, hold, err, f)
}

// Force is documented by the lock packages as ForceUnlock.
func (l *Lock) Force(ctx context.Context) (bool, error) {
	r, c := l.p.Queue, l.p.Queue.Client
	if c.Closing.Err() != nil {
		return false, session.Wrap(l.p.Name, session.ErrClosed)
	}
	if ctx.Err() != nil {
		return false, session.Wrap(l.p.Name, session.ContextError(ctx))
	}
	held, err := c.Conn.Force(session.WithoutDeadline(ctx), r.Keys, r.Floor.Load())
	if err != nil {
		told := r.ReadError(ctx, l.p.Name, err)
		if lua.Classify(err) == lua.NoAnswer {
			told = session.Wrap(l.p.Name, session.Join(told, session.ErrUnknownOutcome))
		}
		return false, told
	}
	return held, nil
}

// State is the inside of the root package's State.
type State struct {
	Holder    string
	Mine      bool
	Token     int64
	Remaining time.Duration
	Waiting   int
	Queue     []string
}

// Inspect is documented by the lock packages.
func (l *Lock) Inspect(ctx context.Context) (State, error) {
	r, c := l.p.Queue, l.p.Queue.Client
	if c.Closing.Err() != nil {
		return State{}, session.Wrap(l.p.Name, session.ErrClosed)
	}
	s, err := c.Conn.Inspect(session.WithoutDeadline(ctx), r.Keys, grant.InspectLimit)
	if err != nil {
		return State{}, r.ReadError(ctx, l.p.Name, err)
	}
	state := State{Holder: s.Owner, Token: s.Token, Waiting: int(s.Length), Remaining: time.Duration(s.Ends) * time.Millisecond}
	state.Mine = lua.ClientOf(s.Owner) == c.IDs.Client
	for _, entry := range s.Queue {
		if owner, err := lua.ParseEntry(entry); err == nil {
			state.Queue = append(state.Queue, owner)
		}
	}
	return state, nil
}
