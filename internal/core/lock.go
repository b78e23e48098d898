package core

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// locks are the kind of all locks.
var locks = &Kind{Family: lua.Locks, Exclusive: true, Commands: func(r *resource) Commands { return lockCommands{r} }}

type lockCommands struct{ *resource }

func (l lockCommands) Acquire(ctx context.Context, claim lua.Claim, mode lua.Mode) (lua.Acquired, error) {
	return l.client.conn.Acquire(ctx, l.keys, claim, l.seen.Load(), mode)
}

func (l lockCommands) Release(ctx context.Context, e lua.Ending, _ int, _ bool) (owned bool, err error) {
	return l.client.conn.Release(ctx, l.keys, e, l.seen.Load())
}

// Lock is the inside of rlock.Lock and fairlock.Lock.
type Lock struct{ p primitive }

// NewLock returns the lock of a name. With delegate one goroutine of this client queues in Redis at a time, and the
// others behind it in the process.
func NewLock(c *Client, name string, delegate bool, set []LockOption) (*Lock, error) {
	p, err := newPrimitive(c, locks, name, set)
	p.delegate = delegate
	if err != nil {
		return nil, err
	}
	return &Lock{p}, nil
}

// Name is the name without the client's prefix.
func (l *Lock) Name() string { return l.p.name }

// Lock is documented by the lock packages, as are the methods that follow.
func (l *Lock) Lock(ctx context.Context) (*Hold, error) {
	return l.p.acquire(ctx, ctx, 0, false) // inlined: what an idle waiter has on its stack is most of its cost
}

// TryLock makes one attempt.
func (l *Lock) TryLock(ctx context.Context) (*Hold, error) {
	return l.p.try(ctx, 0)
}

// TryLockFor waits for d at most.
func (l *Lock) TryLockFor(ctx context.Context, d time.Duration) (*Hold, error) {
	return l.p.tryFor(ctx, 0, d)
}

// Do locks, runs f and unlocks.
func (l *Lock) Do(ctx context.Context, f func(context.Context, *Hold) error) error {
	hold, err := l.Lock(ctx)
	return guard(ctx, hold, err, f)
}

// TryDo is Do with TryLock.
func (l *Lock) TryDo(ctx context.Context, f func(context.Context, *Hold) error) error {
	hold, err := l.TryLock(ctx)
	return guard(ctx, hold, err, f)
}

// Force is documented by the lock packages as ForceUnlock.
func (l *Lock) Force(ctx context.Context) (bool, error) {
	r, c := l.p.resource, l.p.resource.client
	if c.closing.Err() != nil {
		return false, named(l.p.name, ErrClosed)
	}
	if ctx.Err() != nil {
		return false, named(l.p.name, ended(ctx))
	}
	held, err := c.conn.Force(withoutDeadline(ctx), r.keys, r.seen.Load())
	if err != nil {
		told := r.unread(ctx, l.p.name, err)
		if lua.Classify(err) == lua.NoAnswer {
			told = named(l.p.name, join(told, ErrUnknownOutcome))
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
	r, c := l.p.resource, l.p.resource.client
	if c.closing.Err() != nil {
		return State{}, named(l.p.name, ErrClosed)
	}
	s, err := c.conn.Inspect(withoutDeadline(ctx), r.keys, InspectLimit)
	if err != nil {
		return State{}, r.unread(ctx, l.p.name, err)
	}
	state := State{Holder: s.Owner, Token: s.Token, Waiting: int(s.Length), Remaining: time.Duration(s.Ends) * time.Millisecond}
	state.Mine = lua.ClientOf(s.Owner) == c.ids.client
	for _, entry := range s.Queue {
		if owner, err := lua.ParseEntry(entry); err == nil {
			state.Queue = append(state.Queue, owner)
		}
	}
	return state, nil
}
