// Package semaphore is a semaphore across processes: a number of permits. Each request takes some, and gives back.
// Permits have a holder and a lease, as in Redisson's RPermitExpirableSemaphore: if a process dies, its permits come
// back. [NewCounting] is the plain counter without holders, Redisson's RSemaphore.
//
//	s, err := semaphore.New(c, "uploads", semaphore.WithCapacity(16))
//	...
//	permits, err := s.Acquire(ctx, 1)
//	...
//	defer permits.Release(ctx)
//	upload(permits.Context())
//
// # Guarantees
//
// Holders never trust more permits than there are, as long as Redis keeps its data and clocks run at about the same
// speed. If you lower the capacity, holders keep what they have, and Redis grants nothing until enough came back. The
// permits of a killed process go to waiters within 100 ms of the end of its lease.
//
// Requests of all processes are granted in the order of arrival, whatever their number of permits: a large request
// never starves (see [WithOvertaking]). While a process knows of no other waiters, its goroutines pass single permits
// on without a command, for 5 ms at most. [WithBudget] and [WithoutLocalHandOff] change that.
//
// Each request and each release takes effect once, also if its reply was lost and it was sent again. While Redis is
// away, methods that wait go on waiting. Methods that only read are sent once, and return ErrUnavailable if Redis does
// not answer.
//
// Java processes with Redisson's semaphore of that kind share the permits: see docs/redisson.md. docs/operations.md has
// the keys and channels.
package semaphore

import (
	"context"
	"math"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// The bounds of numbers of permits.
const (
	// MaxPermits is how many permits one request of a [Semaphore] can be for.
	MaxPermits = 1000
	// MaxCapacity is how many permits a semaphore can have, and one request of a [Counting] can be for.
	MaxCapacity = math.MaxInt32
)

// The errors that only semaphores have, for errors.Is.
var (
	// ErrNotSet says that the number of permits is not set.
	ErrNotSet = lua.ErrNotSet
	// ErrCapacity says that a request is for more permits than there are, free or held: see [WithWaitForCapacity].
	ErrCapacity = lua.ErrCapacity
)

// Semaphore is the semaphore of a name. Any number of goroutines share it. The zero value is not usable: see [New].
type Semaphore struct{ base base }

// New returns the semaphore of a name. It does no I/O. The name is as for package rlock. Use it for nothing else: a
// latch is a plain number in Redis too. New returns ErrInvalid for other names, a nil client and options out of range.
func New(c *latchkey.Client, name string, opts ...Option) (*Semaphore, error) {
	b, err := newBase(c, leased, name, setLeased(opts))
	if err != nil {
		return nil, err
	}
	return &Semaphore{b}, nil
}

// Name returns the name that New was given.
func (s *Semaphore) Name() string { return s.base.p.Name }

// Acquire waits until it holds n permits or ctx ends; n is from 1 to [MaxPermits]. The permits' context is derived
// from ctx. So a deadline of ctx bounds your work as well: use [Semaphore.TryAcquireFor] to bound the wait alone.
// There is no re-entry.
//
// Acquire survives an outage of Redis that ends before ctx does. If Redis is away when ctx ends, the error also
// matches ErrUnavailable. [ErrNotSet], [ErrCapacity], and errors of Redis that do not pass by themselves, come at
// once.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Permits, error) {
	if err := s.base.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	h, err := s.base.p.Acquire(grant.Attempt{Parent: ctx, Waits: ctx, Permits: n})
	return (*Permits)(h), err
}

// TryAcquire makes one attempt. It returns ErrNotAcquired if too few permits are free, or another request is first,
// and ErrUnavailable if Redis does not answer within the command timeout; at once if Redis has been away for that
// long.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Permits, error) {
	if err := s.base.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	h, err := s.base.p.Try(ctx, n)
	return (*Permits)(h), err
}

// TryAcquireFor is Acquire for wait at most, which must be more than 0. After that it returns ErrNotAcquired.
func (s *Semaphore) TryAcquireFor(ctx context.Context, n int, wait time.Duration) (*Permits, error) {
	if err := s.base.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	h, err := s.base.p.TryFor(ctx, n, wait)
	return (*Permits)(h), err
}

// Do acquires n permits, calls f with their context, and releases them, also if f panics. That context ends when the
// permits are lost, or with ctx: use [Semaphore.TryDoFor] to bound the wait alone. Its errors are as of
// [latchkey.Lock.Do].
func (s *Semaphore) Do(ctx context.Context, n int, f func(context.Context, *Permits) error) error {
	p, err := s.Acquire(ctx, n)
	return hold.Guard(ctx, p.inside(), err, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Permits)(h)) })
}

// TryDo is [Semaphore.Do] with [Semaphore.TryAcquire].
func (s *Semaphore) TryDo(ctx context.Context, n int, f func(context.Context, *Permits) error) error {
	p, err := s.TryAcquire(ctx, n)
	return hold.Guard(ctx, p.inside(), err, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Permits)(h)) })
}

// TryDoFor is [Semaphore.Do] with [Semaphore.TryAcquireFor]: wait bounds the wait alone.
func (s *Semaphore) TryDoFor(ctx context.Context, n int, wait time.Duration, f func(context.Context, *Permits) error) error {
	p, err := s.TryAcquireFor(ctx, n, wait)
	return hold.Guard(ctx, p.inside(), err, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Permits)(h)) })
}

// Do is [Semaphore.Do] for a semaphore that is used once, as of a tenant. An error of New matches latchkey.ErrNotRun
// as well.
func Do(ctx context.Context, c *latchkey.Client, name string, n int, f func(context.Context, *Permits) error, opts ...Option) error {
	s, err := New(c, name, opts...)
	if err != nil {
		return hold.NotRun(err)
	}
	return s.Do(ctx, n, f)
}

// Attach goes on with permits that [Permits.Detach] has left, as [latchkey.Lock.Attach] does with a lock.
func (s *Semaphore) Attach(ctx context.Context, text string) (*Permits, error) {
	h, err := s.base.p.Attach(ctx, text)
	return (*Permits)(h), err
}

// Drain takes all permits that are free now, up to [MaxPermits], also if requests wait for them. It never waits: it
// returns ErrNotAcquired if none is free, and [ErrNotSet].
func (s *Semaphore) Drain(ctx context.Context) (*Permits, error) {
	h, err := s.base.p.Try(ctx, grant.All)
	return (*Permits)(h), err
}

// TrySetCapacity sets how many permits there are, from 0 to [MaxCapacity], unless a number is set. It reports whether
// it did. It is sent until Redis answers or ctx ends, as the other methods that change the number, and Delete. Each
// takes effect once. Without an answer the error matches ErrUnknownOutcome.
func (s *Semaphore) TrySetCapacity(ctx context.Context, n int) (bool, error) {
	done, _, _, err := s.base.changeCapacity(ctx, lua.Initialize, int64(n))
	return done, err
}

// SetCapacity sets how many permits there are, from 0 to [MaxCapacity]. New permits go to waiting requests at once. A
// request for more permits than there are now gets [ErrCapacity], at most two seconds after it became the first.
func (s *Semaphore) SetCapacity(ctx context.Context, n int) error {
	_, _, _, err := s.base.changeCapacity(ctx, lua.Set, int64(n))
	return err
}

// AddCapacity changes how many permits there are by n, and returns the new number. If that would be less than 0 or
// more than [MaxCapacity], it changes nothing, and returns ErrInvalid. If no number is set, it returns [ErrNotSet].
func (s *Semaphore) AddCapacity(ctx context.Context, n int) (capacity int, err error) {
	_, total, _, err := s.base.changeCapacity(ctx, lua.Add, int64(n))
	return int(total), err
}

// Available returns how many permits are free; negative while more are held than there are. It returns [ErrNotSet], as
// do Capacity, InUse and Inspect.
func (s *Semaphore) Available(ctx context.Context) (int, error) {
	state, err := s.base.inspect(ctx, 0)
	return state.Available, err
}

// Capacity returns how many permits there are, free or held.
func (s *Semaphore) Capacity(ctx context.Context) (int, error) {
	state, err := s.base.inspect(ctx, 0)
	return state.Capacity, err
}

// InUse returns how many permits are held.
func (s *Semaphore) InUse(ctx context.Context) (int, error) {
	state, err := s.base.inspect(ctx, 0)
	return state.InUse, err
}

// Delete removes the semaphore, and reports whether there was one. Holders lose their permits once their clients hear
// of it. Waiting requests get [ErrNotSet], or wait on with [WithWaitForSet].
func (s *Semaphore) Delete(ctx context.Context) (bool, error) { return s.base.delete(ctx) }

// Inspect returns the holders and the waiting requests, also together with [ErrNotSet].
func (s *Semaphore) Inspect(ctx context.Context) (State, error) {
	return s.base.inspect(ctx, grant.InspectLimit)
}
