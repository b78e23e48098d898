// Package semaphore is a semaphore across processes: a number of permits, of which each request takes some
// and gives them back. Permits have a holder and a lease, as in Redisson's RPermitExpirableSemaphore, so
// that those of a process that died come back. [NewCounting] is the plain counter without holders,
// Redisson's RSemaphore.
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
// Holders never trust more permits than there are, as long as Redis keeps its data and clocks run at about
// the same speed: a holder trusts a lease from the moment it sent its last successful request, and in
// Redis the lease is not shorter. After the capacity was lowered, holders keep what they have, and Redis
// grants none until enough came back. After [Semaphore.Delete], holders have their permits until their
// clients hear of it.
//
// The permits of a process that was killed are free no later than its lease. Within 100 ms of that they are
// granted to those who wait.
//
// Requests of all processes are granted in the order of arrival, also when they are for different numbers.
// The first in the queue is granted as soon as enough permits are free, and nobody passes it. So a large
// request never starves (see [WithOvertaking]). One release may grant to several. A waiter whose process
// died is skipped. If it is the first and does not fit, those behind it may wait up to two seconds more.
//
// As long as a process does not know that others wait, its goroutines stand in a line inside it, and pass
// single permits on without a command. It is told when another process begins to wait. Then the whole line
// goes to the queue at once. So a request of another process may be passed until the message has come: 5 ms
// after the permits were granted that ends by itself. With [WithBudget] a process passes permits on although
// others wait, or never.
//
// Each request and each release takes effect once, also when its reply was lost and it was sent again: no
// permit is taken or given back twice.
//
// A fencing token ([Permits.Token]) is greater than every token that was given out for the semaphore
// before.
//
// Nothing stays of a context that ends or a process that dies: entries in the queue are removed or
// skipped, and permits come back with their leases. The semaphore itself stays until [Semaphore.Delete]:
// its number of permits has no time to live. The leases of a process that died stay until the next request
// removes them; every request counts them as free. Other keys have a time to live of a day to a month, and
// for each change of the capacity one of ten minutes.
//
// While Redis is away, methods that wait do so, as in all of latchkey. Methods that only read, as
// Available, are sent once, and return ErrUnavailable when Redis does not answer, joined with the error
// of the context if that has ended.
//
// # In Redis
//
// The keys of a semaphore named N (after the key prefix) are N, {N}:timeout, latchkey_queue:{N},
// latchkey_pace:{N}, latchkey_called:{N}, latchkey_token:{N}, latchkey_holders:{N}, and those that begin with
// latchkey_done:{N}; a probe touches latchkey_probe:{N}, which never exists. The channel that Redisson
// listens on is redisson_sc:{N}, which a Redis user needs as a key pattern, too; ours are
// latchkey_inbox:*. All are without the braces if N has some.
//
// Java processes that use Redisson's semaphore of that kind share the same permits, and are woken when
// some are free. They do not stand in our queue. Our waiters notice permits that Java gave back within two
// seconds. Redisson judges leases by the clock of its own machine.
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
	// ErrNotInitialized says that nobody has set how many permits there are.
	ErrNotInitialized = lua.ErrNotInitialized
	// ErrCapacity says that a request is for more permits than there are, free or held, so that it could
	// wait for ever: see [WithWaitForCapacity].
	ErrCapacity = lua.ErrCapacity
)

// Semaphore is a semaphore of one name. Any number of goroutines share it. Two of one name on one client
// are the same. There is no usable zero value: see [New].
type Semaphore struct{ base base }

// New returns the semaphore of a name. It does no I/O. The name is as for package rlock, and nothing else may
// have it: a [Counting] and a latch of that name are plain numbers in Redis, too, and each takes the
// number of another as its own, without an error. It returns ErrInvalid for other names, a nil client
// and options out of range.
func New(c *latchkey.Client, name string, opts ...Option) (*Semaphore, error) {
	b, err := newBase(c, leased, name, set(opts))
	if err != nil {
		return nil, err
	}
	return &Semaphore{b}, nil
}

// Name returns the name that was given to New.
func (s *Semaphore) Name() string { return s.base.p.Name }

// Acquire waits until it holds n permits or ctx ends; n is from 1 to [MaxPermits]. The permits' context is derived
// from ctx. So a deadline of ctx bounds what you do with them as well: use [Semaphore.TryAcquireFor] to bound the
// wait alone.
//
// Acquire survives any outage of Redis that ends before ctx does. If Redis answered none of its commands by then, or
// the client's subscription is down, the error joins the context's with ErrUnavailable. Other errors come at once:
// [ErrNotInitialized], [ErrCapacity], ErrInvalid, ErrWrongType, ErrTooManyWaiters, ErrClosed, and errors
// of Redis that will not pass by themselves.
//
// There is no re-entry. An Acquire with the context of permits that are held takes further ones. When
// there are not enough, it waits for itself.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Permits, error) {
	if err := s.base.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	h, err := s.base.p.Acquire(grant.Attempt{Parent: ctx, Waits: ctx, Permits: n})
	return (*Permits)(h), err
}

// TryAcquire makes one attempt. It returns ErrNotAcquired when too few permits are free or somebody waits for
// them, and ErrUnavailable when Redis does not answer within the client's command timeout; at once when it
// has been away for as long already. Other errors are those of Acquire that come at once. Whoever gave up
// waiting counts until Redis has heard of it, some milliseconds later. TryAcquire waits for that if it was of
// the same client, for 50 ms at most.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Permits, error) {
	if err := s.base.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	h, err := s.base.p.Try(ctx, n)
	return (*Permits)(h), err
}

// TryAcquireFor is Acquire that waits no longer than wait, which must be more than 0. After that it returns
// ErrNotAcquired. When ctx ends by then, by its own deadline or earlier, the error is the context's. Other
// errors are those of Acquire.
func (s *Semaphore) TryAcquireFor(ctx context.Context, n int, wait time.Duration) (*Permits, error) {
	if err := s.base.validPermits(n, MaxPermits); err != nil {
		return nil, err
	}
	h, err := s.base.p.TryFor(ctx, n, wait)
	return (*Permits)(h), err
}

// Do acquires n permits, calls f with their context, and releases them, also when f panics. Their context
// ends when they are lost.
//
// An error that matches [latchkey.ErrNotRun] says that f never ran, and has the error of Acquire as its
// reason. Any other error is f's, or ErrLost: the permits were lost before f ended, so that others may
// have had them. The answer to the release may be the first to say so, as that of a lock. Otherwise, if
// f ended while the lease was trusted, Do returns what f returned, whatever becomes of the release. Do
// waits for the release for 100 ms at most; then it goes on in the background. If it fails the lease
// runs out, which is logged.
func (s *Semaphore) Do(ctx context.Context, n int, f func(context.Context, *Permits) error) error {
	p, err := s.Acquire(ctx, n)
	return hold.Guard(ctx, p.inside(), err, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Permits)(h)) })
}

// TryDo is [Semaphore.Do] with [Semaphore.TryAcquire].
func (s *Semaphore) TryDo(ctx context.Context, n int, f func(context.Context, *Permits) error) error {
	p, err := s.TryAcquire(ctx, n)
	return hold.Guard(ctx, p.inside(), err, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Permits)(h)) })
}

// TryDoFor is [Semaphore.Do] with [Semaphore.TryAcquireFor]: it waits for the permits for wait at most, which
// bounds neither f nor its context.
func (s *Semaphore) TryDoFor(ctx context.Context, n int, wait time.Duration, f func(context.Context, *Permits) error) error {
	p, err := s.TryAcquireFor(ctx, n, wait)
	return hold.Guard(ctx, p.inside(), err, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Permits)(h)) })
}

// Do is [Semaphore.Do] of the semaphore of a name, for names that are made for one use, as of a tenant. An
// error of [New] matches latchkey.ErrNotRun as well.
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

// Drain takes all permits that are free now, also those that somebody waits for, but [MaxPermits] at most.
// It returns ErrNotAcquired when none is free. It returns [ErrNotInitialized] when nobody has set how many
// there are, also with [WithWaitForInit]: it never waits.
func (s *Semaphore) Drain(ctx context.Context) (*Permits, error) {
	h, err := s.base.p.Try(ctx, grant.All)
	return (*Permits)(h), err
}

// TrySetPermits sets how many permits there are, from 0 to [MaxCapacity], unless somebody has set that
// already. It reports whether it did. If somebody deleted the number alone, as by a DEL of its key,
// permits that are still held count as held.
//
// It is sent until Redis answers or ctx ends, as are the other methods that change the number, and
// [Semaphore.Delete]. Each takes effect once: Redis keeps a record of it for ten minutes, and after nine
// without an answer the client gives up. If it may have taken effect then, the error has
// ErrUnknownOutcome.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int) (bool, error) {
	done, _, _, err := s.base.changeCapacity(ctx, lua.Initialize, int64(n))
	return done, err
}

// SetPermits sets how many permits there are, from 0 to [MaxCapacity]. Permits that it adds are granted at
// once to those who wait. When more are held than there are now, the holders keep them,
// [Semaphore.Available] is negative, and Redis grants none until enough came back: what a process passes on
// inside goes on until its budget is used up. A request that waits for more than there are now gets
// [ErrCapacity], two seconds after it became the first at the latest.
func (s *Semaphore) SetPermits(ctx context.Context, n int) error {
	_, _, _, err := s.base.changeCapacity(ctx, lua.Set, int64(n))
	return err
}

// AddPermits changes how many permits there are by n, which may be negative, and returns the new number.
// It returns ErrInvalid, and changes nothing, when that would be less than 0 or more than [MaxCapacity].
// It returns [ErrNotInitialized] when nobody has set a number.
func (s *Semaphore) AddPermits(ctx context.Context, n int) (capacity int, err error) {
	_, total, _, err := s.base.changeCapacity(ctx, lua.Add, int64(n))
	return int(total), err
}

// Available returns how many permits are free. It is negative while more are held than there are. It
// returns [ErrNotInitialized] when nobody has set how many there are, as do Capacity, InUse and Inspect.
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

// Delete removes the semaphore, and reports whether there was one. Holders lose their permits as soon as
// their clients hear of it. Requests that wait get [ErrNotInitialized], or wait on where [WithWaitForInit]
// says so.
func (s *Semaphore) Delete(ctx context.Context) (bool, error) { return s.base.delete(ctx) }

// Inspect returns the holders and the requests that wait, also together with [ErrNotInitialized].
func (s *Semaphore) Inspect(ctx context.Context) (State, error) {
	return s.base.inspect(ctx, grant.InspectLimit)
}
