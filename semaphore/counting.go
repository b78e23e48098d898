package semaphore

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// Counting is a plain counter of permits, as Redisson's RSemaphore. A permit has no owner and no lease, and any
// process may release any number. So the permits of a process that died do not come back: if that matters, use
// [Semaphore].  [latchkey.Client.Shutdown] does not wait for plain
// permits. Any number of goroutines share a Counting. The zero value is not usable: see [NewCounting].
type Counting struct{ base base }

// NewCounting returns the plain semaphore of a name. It does no I/O. It returns ErrInvalid as [New] does, and for a
// client with latchkey.WithReplicas.
func NewCounting(c *latchkey.Client, name string, opts ...CountingOption) (*Counting, error) {
	o, inner := setCounting(opts), (*session.Handle)(c).Client()
	if inner != nil && inner.Options.Replicas > 0 {
		return nil, fail.Wrap(name, fail.Invalid("a counting semaphore does not wait for replicas"))
	}
	// The lease ends nothing, as no permit has one. It only must not be over while a reply is on its way.
	o.leases = []terms.Option{terms.WithLease(session.MaxLease)}
	b, err := newBase(c, plain, name, o)
	if err != nil {
		return nil, err
	}
	return &Counting{b}, nil
}

// Name returns the name that NewCounting was given.
func (s *Counting) Name() string { return s.base.p.Name }

// Acquire waits until it has n permits or ctx ends; n is from 1 to [MaxCapacity]. Its errors are as of
// [Semaphore.Acquire] but ErrCapacity: any number may be released some day.
func (s *Counting) Acquire(ctx context.Context, n int) error {
	return s.acquire(grant.Attempt{Parent: ctx, Waits: ctx, Permits: n})
}

// TryAcquire makes one attempt, with the errors of [Semaphore.TryAcquire].
func (s *Counting) TryAcquire(ctx context.Context, n int) error {
	limited, cancel := grant.Impatient(ctx, s.base.p.Queue.At.Client)
	defer cancel()
	return s.acquire(grant.Attempt{Parent: ctx, Waits: limited, Permits: n, Try: true})
}

// TryAcquireFor is Acquire for wait at most, which must be more than 0. After that it returns ErrNotAcquired.
func (s *Counting) TryAcquireFor(ctx context.Context, n int, wait time.Duration) error {
	limited, cancel, err := grant.Within(ctx, s.base.p.Name, wait)
	if err != nil {
		return err
	}
	defer cancel()
	return s.acquire(grant.Attempt{Parent: ctx, Waits: limited, Permits: n})
}

// Do acquires n permits, calls f with ctx, and releases them, also when f panics. If the error matches
// latchkey.ErrNotRun, f never ran. Any other error is f's, joined with the error of the release if Redis refused it.
// Do waits 100 ms at most for the release.
func (s *Counting) Do(ctx context.Context, n int, f func(context.Context) error) error {
	return s.guard(ctx, n, s.Acquire(ctx, n), f)
}

// TryDo is [Counting.Do] with [Counting.TryAcquire].
func (s *Counting) TryDo(ctx context.Context, n int, f func(context.Context) error) error {
	return s.guard(ctx, n, s.TryAcquire(ctx, n), f)
}

// TryDoFor is [Counting.Do] with [Counting.TryAcquireFor]: wait bounds the wait alone.
func (s *Counting) TryDoFor(ctx context.Context, n int, wait time.Duration, f func(context.Context) error) error {
	return s.guard(ctx, n, s.TryAcquireFor(ctx, n, wait), f)
}

// guard runs f with n permits that were acquired, unless err says that they were not.
func (s *Counting) guard(ctx context.Context, n int, err error, f func(context.Context) error) (result error) {
	if err != nil {
		return hold.NotRun(err)
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), hold.Handover)
		defer cancel()
		err := s.Release(limited, n)
		if errors.Is(err, fail.ErrUnknownOutcome) {
			err = nil // the release goes on: a caller that took this for an error of f would do the work again
		}
		result = fail.Join(hold.Ran(result), err)
	}()
	return f(ctx)
}

// Release adds n permits, from 1 to [MaxCapacity], and grants them to waiting requests. It is sent even if ctx has
// ended, and waits as [latchkey.Hold.Unlock] does. After ErrUnknownOutcome it goes on in the background for up to nine
// minutes. It adds nothing and returns [ErrNotSet] if no number is set, and ErrInvalid if there would be more than
// MaxCapacity. Neither is found for a permit that goes to a goroutine of the process.
func (s *Counting) Release(ctx context.Context, n int) error {
	if err := s.base.validPermits(n, MaxCapacity); err != nil {
		return err
	}
	q := s.base.p.Queue
	if q.At.Client.Stopped.Err() != nil { // it works while Shutdown waits: permits must come back then, too
		return fail.Wrap(s.base.p.Name, fail.ErrClosed)
	}
	if n == 1 && s.base.p.PassOn() {
		s.base.p.GaveBack(ctx, n)
		return nil
	}
	if err := q.At.FinishInBackground(ctx, s.base.pool.newPlainRelease(n).send); err != nil {
		return fail.Wrap(s.base.p.Name, err)
	}
	s.base.p.GaveBack(ctx, n)
	return nil
}

// TrySetPermits sets how many permits are free, from 0 to [MaxCapacity], unless a number is set. It reports whether it
// did. It is sent as [Semaphore.TrySetCapacity] is.
func (s *Counting) TrySetPermits(ctx context.Context, n int) (bool, error) {
	done, _, _, err := s.base.changeCapacity(ctx, lua.Initialize, int64(n))
	return done, err
}

// AddPermits changes how many permits are free by n, and returns how many are free after that. The number may become
// negative. If no number is set, it returns [ErrNotSet]. It is sent as [Semaphore.TrySetCapacity] is.
func (s *Counting) AddPermits(ctx context.Context, n int) (available int, err error) {
	_, total, _, err := s.base.changeCapacity(ctx, lua.Add, int64(n))
	return int(total), err
}

// Drain takes all permits that are free now, also if requests wait for them, and returns how many; or [ErrNotSet].
func (s *Counting) Drain(ctx context.Context) (int, error) {
	_, _, taken, err := s.base.changeCapacity(ctx, lua.Drain, 0)
	return int(taken), err
}

// Available returns how many permits are free, or [ErrNotSet].
func (s *Counting) Available(ctx context.Context) (int, error) {
	state, err := s.base.inspect(ctx, 0)
	return state.Available, err
}

// Waiting returns how many requests wait in the queue.
func (s *Counting) Waiting(ctx context.Context) (int, error) {
	state, err := s.base.inspect(ctx, 0)
	return state.Waiting, err
}

// Delete removes the semaphore, as [Semaphore.Delete].
func (s *Counting) Delete(ctx context.Context) (bool, error) { return s.base.delete(ctx) }

// acquire takes permits, and has the observer hear of it. When the observer panics, it gives them back: the
// caller never learns that it has them.
func (s *Counting) acquire(a grant.Attempt) error {
	if err := s.base.validPermits(a.Permits, MaxCapacity); err != nil {
		return err
	}
	began := time.Now()
	contended, err := s.take(a)
	return s.taken(a.Parent, a.Permits, began, contended, err)
}

// taken tells the observer what came of a request, and returns that. It stands apart because of what acquire
// has on its stack while it sleeps.
//
//go:noinline
func (s *Counting) taken(ctx context.Context, n int, began time.Time, contended bool, err error) error {
	session.HookOrUndo(func() { s.base.p.Attempted(ctx, n, began, contended, err) }, func() {
		if err == nil {
			s.base.p.Queue.At.Go(func() { _ = s.Release(context.Background(), n) })
		}
	})
	return err
}

// take waits for the permits, and acknowledges the command unless a copy of it may still arrive. It reports
// whether it waited for others.
func (s *Counting) take(a grant.Attempt) (contended bool, err error) {
	number, settled, contended, err := s.base.p.Draw(a)
	if settled {
		s.base.pool.acks.Add(number)
	}
	return contended, err
}
