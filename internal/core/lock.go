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

// Lock is the inside of rlock.Lock and fairlock.Lock.
type Lock struct {
	resource *resource
	name     string
	terms    terms
	delegate bool
}

// NewLock returns the lock of a name. With delegate one goroutine of this client queues in Redis at a time, and the
// others behind it in the process.
func NewLock(c *Client, name string, delegate bool, set []LockOption) (*Lock, error) {
	if c == nil {
		return nil, invalid("the client is nil")
	}
	if name == "" {
		return nil, invalid("%w: it is empty", lua.ErrName)
	}
	var o LockOptions
	for _, option := range set {
		if option != nil {
			option(&o)
		}
	}
	terms, err := o.terms(c.options.Lease)
	if err != nil {
		return nil, err
	}
	if c.options.Replicas > 0 && c.options.ReplicaTimeout >= terms.lease {
		return nil, invalid("the lease must be longer than what replicas may take, not %v and %v", terms.lease, c.options.ReplicaTimeout)
	}
	r, err := c.resource(name)
	if err != nil {
		return nil, err
	}
	return &Lock{resource: r, name: name, terms: terms, delegate: delegate}, nil
}

// Name is the name without the client's prefix.
func (l *Lock) Name() string { return l.name }

// Lock is documented by the lock packages, as are the methods that follow.
func (l *Lock) Lock(ctx context.Context) (*Hold, error) {
	return l.acquire(ctx, ctx, false) // inlined: what an idle waiter has on its stack is most of its cost
}

// TryLock makes one attempt.
func (l *Lock) TryLock(ctx context.Context) (*Hold, error) {
	limited, cancel := context.WithTimeout(ctx, l.resource.client.options.CommandTimeout)
	defer cancel()
	return l.acquire(ctx, limited, true)
}

// TryLockFor waits for d at most.
func (l *Lock) TryLockFor(ctx context.Context, d time.Duration) (*Hold, error) {
	if d <= 0 {
		return nil, named(l.name, invalid("the wait must be more than 0, not %v", d))
	}
	limited, cancel := context.WithTimeoutCause(ctx, d, ErrNotAcquired)
	defer cancel()
	return l.acquire(ctx, limited, false)
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

func guard(ctx context.Context, hold *Hold, err error, f func(context.Context, *Hold) error) (result error) {
	if err != nil {
		return err
	}
	defer func() { result = errors.Join(result, hold.Unlock(ctx)) }()
	return f(hold.Context(), hold)
}

// acquire waits until waits ends. The hold's context is derived from parent.
func (l *Lock) acquire(parent, waits context.Context, try bool) (*Hold, error) {
	hold, err := l.begin(parent, try)
	if hold != nil || err != nil {
		return hold, err
	}
	if l.delegate && !try {
		hold, err = l.inLine(parent, waits)
	} else {
		hold, err = l.compete(parent, waits, try, time.Now(), l.resource.client.newTenure(l, false))
	}
	l.resource.exit()
	if !try {
		l.resource.room.Inside.Add(-1)
	}
	return hold, err
}

// inLine waits for its turn in the process, and goes on with what was left to it.
func (l *Lock) inLine(parent, waits context.Context) (*Hold, error) {
	began := time.Now()
	left, err := l.resource.line.Enter(waits, l.resource.client.closing)
	if err != nil {
		left.dispose()
		return nil, l.failed(parent, waits, err)
	}
	if left != nil {
		if hold := left.next(parent, l.terms, began); hold != nil {
			return hold, nil
		}
	}
	return l.compete(parent, waits, false, began, l.follow(left))
}

// compete acquires in Redis, with t first.
//
//go:noinline
func (l *Lock) compete(parent, waits context.Context, try bool, began time.Time, t *tenure) (*Hold, error) {
	delegate := l.delegate && !try
	for t != nil {
		if err := l.resource.room.Acquire(waits, &t.waiter, try); err != nil {
			return nil, l.failed(parent, waits, err)
		}
		err := t.replicate(waits)
		if err == nil {
			if hold := t.hold(parent, l.terms, began); hold != nil {
				return hold, nil
			}
		} else {
			l.resource.room.Abandon(&t.waiter)
			if !errors.Is(err, errGone) {
				if delegate {
					l.resource.line.Pass(nil)
				}
				if errors.Is(err, errEnded) {
					return nil, l.failed(parent, waits, context.Cause(waits))
				}
				return nil, named(l.name, err)
			}
		}
		t = l.resource.client.newTenure(l, delegate)
	}
	if delegate {
		l.resource.line.Pass(nil)
	}
	return nil, named(l.name, ErrClosed)
}

// begin checks what can be known at once, re-enters, and counts who goes on.
func (l *Lock) begin(parent context.Context, try bool) (*Hold, error) {
	r, c := l.resource, l.resource.client
	if c.closing.Err() != nil {
		return nil, named(l.name, ErrClosed)
	}
	if parent.Err() != nil {
		return nil, named(l.name, ended(parent))
	}
	if outer, ok := parent.Value(r).(*Hold); ok && outer.Held() {
		if l.terms.withoutReentry {
			return nil, named(l.name, ErrReentered)
		}
		if again := outer.turn.reenter(parent); again != nil {
			return again, nil
		}
	}
	if !try && r.room.Inside.Add(1) > int64(c.options.MaxWaiters) {
		r.room.Inside.Add(-1)
		return nil, named(l.name, ErrTooManyWaiters)
	}
	r.enter()
	return nil, nil //nolint:nilnil // go on
}

// failed is the error of an attempt that ended: the server's answer if there was one, else what ended it, with the reason
// why Redis did not answer.
func (l *Lock) failed(parent, waits context.Context, err error) error {
	var away *wait.AwayError
	last := l.resource.health().Away()
	if errors.As(err, &away) {
		last = away.Last
	}
	switch {
	case errors.Is(err, ErrClosed) && l.resource.client.closing.Err() != nil:
		return named(l.name, ErrClosed)
	case away == nil && !errors.Is(err, context.Cause(waits)):
		return named(l.name, public(err))
	case parent.Err() != nil:
		err = ended(parent)
	case errors.Is(context.Cause(waits), ErrNotAcquired):
		err = ErrNotAcquired
	default:
		return named(l.name, errors.Join(fmt.Errorf("%w: no answer within the command timeout", ErrUnavailable), last))
	}
	if last != nil {
		err = errors.Join(err, ErrUnavailable, last)
	}
	return named(l.name, err)
}

// Force is documented by the lock packages as ForceUnlock.
func (l *Lock) Force(ctx context.Context) (bool, error) {
	r, c := l.resource, l.resource.client
	if c.closing.Err() != nil {
		return false, named(l.name, ErrClosed)
	}
	held, err := c.conn.Force(withoutDeadline(ctx), r.keys, c.seen.Load())
	if err != nil {
		return false, named(l.name, outcome(err))
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

// InspectLimit is how many entries of a queue Inspect lists.
const InspectLimit = 1000

// Inspect is documented by the lock packages.
func (l *Lock) Inspect(ctx context.Context) (State, error) {
	r, c := l.resource, l.resource.client
	if c.closing.Err() != nil {
		return State{}, named(l.name, ErrClosed)
	}
	s, err := c.conn.Inspect(withoutDeadline(ctx), r.keys, InspectLimit)
	if err != nil {
		return State{}, named(l.name, outcome(err))
	}
	state := State{Holder: s.Owner, Token: s.Token, Waiting: int(s.Length), Remaining: time.Duration(s.Ends) * time.Millisecond}
	state.Mine = lua.ClientOf(s.Owner) == c.id
	for _, entry := range s.Queue {
		if owner, err := lua.ParseEntry(entry); err == nil {
			state.Queue = append(state.Queue, owner)
		}
	}
	return state, nil
}

var _ wait.Server = (*resource)(nil)
var _ lease.Renewer = renewer{}
