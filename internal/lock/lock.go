package lock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// Lock is the inside of the root package's Lock, which documents the methods of the same names. It is safe
// for concurrent use. [New] makes it.
type Lock struct {
	p      grant.Primitive
	engine Engine // nil: p is the lock
}

// AnyHolder is the token with which [Engine].ForceUnlock takes the lock from any holder.
const AnyHolder = lua.AnyHolder

// Engine takes a lock that is no single primitive. The root package's Lock documents the methods of the same names.
// All methods are safe for concurrent use.
type Engine interface {
	Name() string
	// Client returns the client whose options and hooks count.
	Client() *session.Client
	// Reenter returns a further hold if parent is the context of a hold of this lock, else nil.
	Reenter(parent context.Context) (*grant.Hold, error)
	// Acquire makes an attempt.
	Acquire(grant.Attempt) (*grant.Hold, error)
	ForceUnlock(ctx context.Context, token int64) (bool, error)
	Inspect(ctx context.Context) (State, error)
}

// New returns the lock of a name. With delegate, one goroutine of this client queues in Redis at a time,
// and the others stand behind it in the line of the process. It returns ErrInvalid for a nil client, and
// for names and options that are not valid.
func New(c *session.Client, name string, delegate bool, o terms.Options) (*Lock, error) {
	p, err := grant.NewPrimitive(c, kind, name, o)
	p.Delegate = delegate
	if err != nil {
		return nil, err
	}
	return &Lock{p: p}, nil
}

// NewQueued returns the primitive of a name whose waiters are queued, each for itself.
func NewQueued(c *session.Client, name string, o terms.Options) (grant.Primitive, error) {
	return grant.NewPrimitive(c, kind, name, o)
}

// NewPolled returns the primitive of a name whose waiters are never queued.
func NewPolled(c *session.Client, name string, o terms.Options) (grant.Primitive, error) {
	return grant.NewPrimitive(c, kind, name, o.Polling())
}

// OfPrimitive returns the lock of p, with the terms and the kind of p.
func OfPrimitive(p grant.Primitive) *Lock { return &Lock{p: p} }

// OfEngine returns the lock that an engine takes.
func OfEngine(e Engine) *Lock { return &Lock{engine: e} }

// Primitive returns the primitive that the lock is, or nil if an engine takes the lock.
func (l *Lock) Primitive() *grant.Primitive {
	if l.engine != nil {
		return nil
	}
	return &l.p
}

// Client returns the client whose options and hooks count, or nil for the zero value.
func (l *Lock) Client() *session.Client {
	switch {
	case l.engine != nil:
		return l.engine.Client()
	case l.p.Queue == nil:
		return nil
	default:
		return l.p.Queue.At.Client
	}
}

// Key is the name with the client's prefix.
func (l *Lock) Key() string { return l.Client().Options.Prefix + l.Name() }

// Same reports whether both are the same lock, or the same half of one.
func (l *Lock) Same(other *Lock) bool {
	if l.engine != nil || other.engine != nil {
		return l.engine == other.engine
	}
	return l.p.Queue == other.p.Queue && l.p.Shared == other.p.Shared
}

// Reenter returns a further hold if parent is the context of a hold of this lock, else nil.
func (l *Lock) Reenter(parent context.Context) (*grant.Hold, error) {
	if l.engine != nil {
		return l.engine.Reenter(parent)
	}
	return l.p.Reenter(parent)
}

// InLine returns how many goroutines stand in the line of the primitive. Tests wait for them.
func (l *Lock) InLine() int { return l.p.InLine() }

// Name is the name that was given to New, without the client's prefix.
func (l *Lock) Name() string {
	if l.engine != nil {
		return l.engine.Name()
	}
	return l.p.Name
}

// KnownOutage is [grant.Primitive.KnownOutage]. It returns nil for a lock over several servers, which asks the
// servers that are up.
func (l *Lock) KnownOutage() error {
	if l.engine != nil {
		return nil
	}
	return l.p.KnownOutage()
}

// Lock waits until the caller has the lock.
func (l *Lock) Lock(ctx context.Context) (*grant.Hold, error) {
	if l.engine != nil {
		return l.engine.Acquire(grant.Attempt{Parent: ctx, Waits: ctx})
	}
	// The body of Acquire is repeated here: the greatest part of an idle waiter's cost is its stack.
	return l.p.Acquire(grant.Attempt{Parent: ctx, Waits: ctx}) //nolint:contextcheck // it is in the attempt
}

// TryLock makes one attempt.
func (l *Lock) TryLock(ctx context.Context) (*grant.Hold, error) {
	limited, cancel := grant.Impatient(ctx, l.Client())
	defer cancel()
	return l.Acquire(grant.Attempt{Parent: ctx, Waits: limited, Try: true}) //nolint:contextcheck // it is in the attempt
}

// TryLockFor waits for d at most.
func (l *Lock) TryLockFor(ctx context.Context, d time.Duration) (*grant.Hold, error) {
	limited, cancel, err := grant.Within(ctx, l.Name(), d)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if l.engine != nil {
		return l.engine.Acquire(grant.Attempt{Parent: ctx, Waits: limited})
	}
	return l.p.Acquire(grant.Attempt{Parent: ctx, Waits: limited}) //nolint:contextcheck // as in Lock
}

// Acquire makes an attempt.
func (l *Lock) Acquire(a grant.Attempt) (*grant.Hold, error) {
	if l.engine != nil {
		return l.engine.Acquire(a)
	}
	return l.p.Acquire(a)
}

// Do locks, runs f and unlocks.
func (l *Lock) Do(ctx context.Context, f func(context.Context, *grant.Hold) error) error {
	h, err := l.Lock(ctx)
	return hold.Guard(ctx, h, err, f)
}

// TryDo is Do with TryLock.
func (l *Lock) TryDo(ctx context.Context, f func(context.Context, *grant.Hold) error) error {
	h, err := l.TryLock(ctx)
	return hold.Guard(ctx, h, err, f)
}

// TryDoFor is Do with TryLockFor.
func (l *Lock) TryDoFor(ctx context.Context, d time.Duration, f func(context.Context, *grant.Hold) error) error {
	h, err := l.TryLockFor(ctx, d)
	return hold.Guard(ctx, h, err, f)
}

// Attach goes on with what a Detach has left.
func (l *Lock) Attach(ctx context.Context, text string) (*grant.Hold, error) {
	if l.engine != nil {
		return nil, fail.Wrap(l.Name(), fail.Invalid("a lock over several servers cannot be attached"))
	}
	return l.p.Attach(ctx, text)
}

// ForceUnlock takes the lock from its holder, and reports whether there was one. It sends the command once: a second
// copy could take the lock from the next holder.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.forceUnlock(ctx, lua.AnyHolder)
}

// ForceUnlockToken is ForceUnlock if the holder has this token. Else it does nothing.
func (l *Lock) ForceUnlockToken(ctx context.Context, token int64) (bool, error) {
	if token < 0 {
		return false, fail.Wrap(l.Name(), fail.Invalid("a token is not negative: %d", token))
	}
	return l.forceUnlock(ctx, token)
}

func (l *Lock) forceUnlock(ctx context.Context, token int64) (bool, error) {
	if l.engine != nil {
		return l.engine.ForceUnlock(ctx, token)
	}
	q, c := l.p.Queue, l.p.Queue.At.Client
	if c.Closing.Err() != nil {
		return false, fail.Wrap(l.p.Name, fail.ErrClosed)
	}
	if ctx.Err() != nil {
		return false, fail.Wrap(l.p.Name, fail.ContextError(ctx))
	}
	sent := time.Now()
	if err := c.Records.SayForced(ctx, &q.At); err != nil {
		return false, q.At.ReadError(ctx, sent, l.p.Name, err)
	}
	sent = time.Now()
	held, err := c.Conn.Force(session.WithoutDeadline(ctx), q.At.Keys, l.p.Shared, q.At.Floor.Load(), token)
	if err == nil {
		q.LeaveParked() //nolint:contextcheck // it is released in the background
		if !held {
			c.Records.UnsayForced(ctx, &q.At)
		}
		return held, nil
	}
	unanswered := lua.Classify(err) == lua.NoAnswer
	if !unanswered {
		c.Records.UnsayForced(ctx, &q.At)
	}
	err = q.At.ReadError(ctx, sent, l.p.Name, err)
	if unanswered {
		err = fail.Wrap(l.p.Name, fail.Join(err, fail.ErrUnknownOutcome))
	}
	return false, err
}
