// Package semaphore is a semaphore across processes: a number of permits. Each request takes some, and gives
// back. Permits have a holder and a lease, as in Redisson's RPermitExpirableSemaphore: if a process dies, its permits
// come back. [NewCounting] is the plain counter without holders, Redisson's RSemaphore.
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
// speed. A holder trusts a lease from when it sent its last successful request. The lease in Redis is not shorter. If
// you lower the capacity, holders keep what they have, and Redis grants nothing until enough came back. After
// [Semaphore.Delete] holders have their permits until their clients hear of it.
//
// The permits of a killed process are free when its lease ends, and go to waiters within 100 ms of that.
//
// Requests of all processes are granted in the order of arrival, whatever their number of permits. The first in the
// queue is granted as soon as enough permits are free, and no request passes it: a large request never starves (see
// [WithOvertaking]). One release may grant several requests. A waiter whose process died is skipped; if it was first
// and did not fit, the next ones may wait up to two seconds more.
//
// As long as a process knows of no other waiters, its goroutines stand in a line inside it, and pass single permits on
// without a command. When another process begins to wait, a message says so, and the whole line goes to the queue. So
// the request of another process may be passed until that message has come; the passing on ends by itself 5 ms after
// the permits were granted. With [WithBudget] a process passes permits on although others wait, or never.
//
// Each request and each release takes effect once, also if its reply was lost and it was sent again. A fencing token
// ([Permits.Token]) is greater than every token that was given out for the semaphore before.
//
// When a context ends or a process dies, its entries in the queue are removed or skipped, and its permits come back
// with their leases. The number of permits stays until [Semaphore.Delete], without a time to live. Other keys live for
// a day to a month, and for ten minutes after each change of the capacity.
//
// While Redis is away, methods that wait go on waiting. Methods that only read, as Available, are sent once, and
// return ErrUnavailable if Redis does not answer, joined with the error of the context if that has ended.
//
// # In Redis
//
// The keys of a semaphore named N (after the key prefix) are N, {N}:timeout, latchkey_queue:{N}, latchkey_pace:{N},
// latchkey_called:{N}, latchkey_token:{N}, latchkey_holders:{N}, and keys that begin with latchkey_done:{N}; all
// without the braces if N has some. A probe touches latchkey_probe:{N}, which never exists. Channels are
// latchkey_inbox:*, and Redisson's redisson_sc:{N}, for which a Redis user also needs a key pattern.
//
// Java processes with Redisson's semaphore of that kind share the permits. They do not stand in our queue. Our waiters
// notice permits that Java gave back within two seconds. Redisson judges leases by the clock of its own machine.
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
	// MaxPermits is how many permits one request of a [Semaphore] can be for. Each permit is an entry of
	// its own in Redis.
	MaxPermits = 1000
	// MaxCapacity is how many permits a semaphore can have, and how many one request of a [Counting] can
	// be for. It is the greatest Java int, which Redisson counts with.
	MaxCapacity = math.MaxInt32
)

// The errors that only semaphores have, for errors.Is.
var (
	// ErrNotSet says that the number of permits is not set.
	ErrNotSet = lua.ErrNotSet
	// ErrCapacity says that a request is for more permits than there are, free or held, so that it could
	// wait for ever: see [WithWaitForCapacity].
	ErrCapacity = lua.ErrCapacity
)

// Semaphore is the semaphore of a name. Any number of goroutines share it. Two Semaphores of one name on one client
// are the same. The zero value is not usable: see [New].
type Semaphore struct{ base base }

// New returns the semaphore of a name. It does no I/O. The name is as for package rlock. Use it for nothing else: a
// [Counting] and a latch are plain numbers in Redis too, and each takes the number of another as its own, without an
// error. New returns ErrInvalid for other names, a nil client and options out of range.
func New(c *latchkey.Client, name string, opts ...Option) (*Semaphore, error) {
	b, err := newBase(c, leased, name, setLeased(opts))
	if err != nil {
		return nil, err
	}
	return &Semaphore{b}, nil
}

// Name returns the name that was given to New.
func (s *Semaphore) Name() string { return s.base.p.Name }

// Acquire waits until it holds n permits or ctx ends; n is from 1 to [MaxPermits]. The permits' context is derived
// from ctx. So a deadline of ctx bounds what you do with them as well: use [Semaphore.TryAcquireFor] to bound the wait
// alone.
//
// Acquire survives an outage of Redis that ends before ctx does. If Redis is away when ctx ends, the error also
// matches ErrUnavailable. Other errors come at once: [ErrNotSet], [ErrCapacity], ErrInvalid, ErrWrongType,
// ErrTooManyWaiters, ErrClosed, and errors of Redis that do not pass by themselves.
//
// There is no re-entry: an Acquire with the context of permits that are held takes further ones, and may wait for
// itself.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Permits, error) {
	if err := s.base.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	h, err := s.base.p.Acquire(grant.Attempt{Parent: ctx, Waits: ctx, Permits: n})
	return (*Permits)(h), err
}

// TryAcquire makes one attempt. It returns ErrNotAcquired if too few permits are free, or another request is first. It
// returns ErrUnavailable if Redis does not answer within the command timeout; at once if Redis has been away for that
// long. Other errors are as of Acquire, if they come at once. A request that gave up counts until Redis has heard of
// it, some milliseconds later. If it was of the same client, TryAcquire waits for that, 50 ms at most.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Permits, error) {
	if err := s.base.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	h, err := s.base.p.Try(ctx, n)
	return (*Permits)(h), err
}

// TryAcquireFor is Acquire for wait at most, which must be more than 0. After that it returns ErrNotAcquired. If ctx
// ends first, the error is ctx's. Other errors are as of Acquire.
func (s *Semaphore) TryAcquireFor(ctx context.Context, n int, wait time.Duration) (*Permits, error) {
	if err := s.base.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	h, err := s.base.p.TryFor(ctx, n, wait)
	return (*Permits)(h), err
}

// Do acquires n permits, calls f with their context, and releases them, also if f panics. Their context ends when they
// are lost, or with ctx: a deadline of ctx bounds f as well. Use [Semaphore.TryDoFor] to bound the wait alone.
//
// If the error matches [latchkey.ErrNotRun], f never ran, and the error says why. Any other error is f's, or ErrLost:
// the permits were lost before f ended, so others may have had them. The answer to the release may be the first to say
// so. If f ended while the lease was trusted, Do returns what f returned, whatever becomes of the release. Do waits
// for the release for 100 ms at most. Then it goes on in the background, and a failure is logged: the lease runs out.
func (s *Semaphore) Do(ctx context.Context, n int, f func(context.Context, *Permits) error) error {
	p, err := s.Acquire(ctx, n)
	return hold.Guard(ctx, p.inside(), err, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Permits)(h)) })
}

// TryDo is [Semaphore.Do] with [Semaphore.TryAcquire].
func (s *Semaphore) TryDo(ctx context.Context, n int, f func(context.Context, *Permits) error) error {
	p, err := s.TryAcquire(ctx, n)
	return hold.Guard(ctx, p.inside(), err, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Permits)(h)) })
}

// TryDoFor is [Semaphore.Do] with [Semaphore.TryAcquireFor]: wait bounds the wait, and neither f nor its context.
func (s *Semaphore) TryDoFor(ctx context.Context, n int, wait time.Duration, f func(context.Context, *Permits) error) error {
	p, err := s.TryAcquireFor(ctx, n, wait)
	return hold.Guard(ctx, p.inside(), err, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Permits)(h)) })
}

// Do is [Semaphore.Do] for a semaphore that is used once, for a tenant say. An error of [New] matches
// latchkey.ErrNotRun as well.
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

// Drain takes all permits that are free now, up to [MaxPermits], also if requests wait for them. It returns
// ErrNotAcquired if none is free, and [ErrNotSet] if no number is set, also with [WithWaitForSet]: it never
// waits.
func (s *Semaphore) Drain(ctx context.Context) (*Permits, error) {
	h, err := s.base.p.Try(ctx, grant.All)
	return (*Permits)(h), err
}

// TrySetCapacity sets how many permits there are, from 0 to [MaxCapacity], unless a number is set. It reports whether
// it did. If only the number was deleted, as by a DEL of its key, permits that are still held count as held.
//
// It is sent until Redis answers or ctx ends, as the other methods that change the number, and [Semaphore.Delete].
// Each takes effect once: Redis keeps a record of it for ten minutes, and the client gives up after nine. If it may
// have taken effect without an answer, the error matches ErrUnknownOutcome.
func (s *Semaphore) TrySetCapacity(ctx context.Context, n int) (bool, error) {
	done, _, _, err := s.base.changeCapacity(ctx, lua.Initialize, int64(n))
	return done, err
}

// SetCapacity sets how many permits there are, from 0 to [MaxCapacity]. New permits go to waiting requests at once. If
// more are held than there are now, the holders keep them, [Semaphore.Available] is negative, and Redis grants nothing
// until enough came back; what a process passes on inside ends with its budget. A request for more permits than there
// are now gets [ErrCapacity], at most two seconds after it became the first.
func (s *Semaphore) SetCapacity(ctx context.Context, n int) error {
	_, _, _, err := s.base.changeCapacity(ctx, lua.Set, int64(n))
	return err
}

// AddCapacity changes how many permits there are by n, which may be negative, and returns the new number. If that would
// be less than 0 or more than [MaxCapacity], it changes nothing, and returns ErrInvalid. If no number is set, it
// returns [ErrNotSet].
func (s *Semaphore) AddCapacity(ctx context.Context, n int) (capacity int, err error) {
	_, total, _, err := s.base.changeCapacity(ctx, lua.Add, int64(n))
	return int(total), err
}

// Available returns how many permits are free. It is negative while more are held than there are. If no number is set,
// it returns [ErrNotSet], as do Capacity, InUse and Inspect.
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

// Delete removes the semaphore, and reports whether there was one. Holders lose their permits as soon as their clients
// hear of it. Waiting requests get [ErrNotSet], or wait on with [WithWaitForSet].
func (s *Semaphore) Delete(ctx context.Context) (bool, error) { return s.base.delete(ctx) }

// Inspect returns the holders and the waiting requests, also together with [ErrNotSet].
func (s *Semaphore) Inspect(ctx context.Context) (State, error) {
	return s.base.inspect(ctx, grant.InspectLimit)
}
