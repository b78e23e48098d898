package semaphore

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Counting is a plain counter of permits, as Redisson's RSemaphore: nobody owns a permit, there is no lease, and whoever wants
// may release any number, also more than were acquired. So the permits of a process that died do not come back; if that
// matters use [Semaphore]. Any number of goroutines share it. There is no usable zero value: see [NewCounting].
//
// Its requests are granted in the order of arrival, and each is done once although its reply was lost and it was sent again:
// Redis remembers it until its client says that it was answered, and at most ten minutes. A process that dies between being
// granted permits and releasing them keeps them, and [latchkey.Client.Shutdown] does not wait for them: release first.
//
// What was taken or given back is remembered in Redis under the id of the command, so that a copy of it changes
// nothing. A command says which others were answered and will not be sent again: those are forgotten.
type Counting struct{ base base }

// NewCounting returns the plain semaphore of a name. It does no I/O. It takes the options of [New] but for those about leases. It
// returns ErrInvalid for those, for names that are not as for package rlock, a nil client, options out of range, and on a
// client with [latchkey.WithReplicas]: it would not wait for them. Use one name as one kind of thing only: a
// latch is a plain number in Redis, too, as Redisson's are, and nobody can tell the two apart.
func NewCounting(c *latchkey.Client, name string, opts ...Option) (*Counting, error) {
	o := set(opts)
	switch {
	case len(o.leases) > 0:
		return nil, session.Wrap(name, session.Invalid("the permits of a counting semaphore have no lease"))
	case c != nil && (*session.Handle)(c).Client().Options.Replicas > 0:
		return nil, session.Wrap(name, session.Invalid("a counting semaphore does not wait for replicas"))
	}
	// The lease of its waiters ends nothing: it only must not be over while a reply is on its way.
	o.leases = []grant.Option{grant.WithLease(session.MaxLease)}
	b, err := newBase(c, plain, name, o)
	if err != nil {
		return nil, err
	}
	return &Counting{b}, nil
}

// Name returns the name that was given to NewCounting.
func (s *Counting) Name() string { return s.base.p.Name }

// Acquire waits until n permits were taken or ctx ends; n is from 1 to [MaxCapacity]. Errors are as those of
// [Semaphore.Acquire], but for ErrCapacity: any number may be released some day.
func (s *Counting) Acquire(ctx context.Context, n int) error { return s.draw(ctx, ctx, n, false) }

// TryAcquire makes one attempt. It returns ErrNotAcquired when there are not enough free permits or somebody waits for them,
// and ErrUnavailable when Redis does not answer within the client's command timeout.
func (s *Counting) TryAcquire(ctx context.Context, n int) error {
	limited, cancel := s.base.p.Impatient(ctx)
	defer cancel()
	return s.draw(ctx, limited, n, true)
}

// TryAcquireFor is Acquire for a time of wait at most, which must be more than 0; then it returns
// ErrNotAcquired. When ctx ends by then, by its own deadline or earlier, the error is the context's.
func (s *Counting) TryAcquireFor(ctx context.Context, n int, wait time.Duration) error {
	limited, cancel, err := s.base.p.Within(ctx, wait)
	if err != nil {
		return err
	}
	defer cancel()
	return s.draw(ctx, limited, n, false)
}

// Release adds n permits, from 1 to [MaxCapacity], and grants them to those who wait. It is sent even when ctx has ended, and
// again until it is answered. Release waits for that until ctx ends, or for the client's release timeout if it has; then it
// returns ErrUnknownOutcome, and the release goes on in the background, for nine minutes, or until the client is closed. It returns
// [ErrNotInitialized], and adds nothing, when nobody has set a number, and ErrInvalid when there would be more than [MaxCapacity].
func (s *Counting) Release(ctx context.Context, n int) error {
	if err := s.base.validPermits(n, MaxCapacity); err != nil {
		return err
	}
	r, c := s.base.p.Queue, s.base.p.Queue.Client
	if c.Stopped.Err() != nil { // and not while Shutdown waits: who has permits must be able to give them back
		return session.Wrap(s.base.p.Name, session.ErrClosed)
	}
	number, stray := c.IDs.Next(), false
	put := lua.Put(c.IDs.ID(number), int64(n))
	of, up := s.base.pool, r.WhileRemembered()
	err := r.FinishInBackground(ctx, func(ctx context.Context) (bool, error) {
		answered, err := r.RetryUntilAnswered(ctx, up, &stray, func(ctx context.Context) error {
			return of.declared.first(ctx, r, func() error {
				reply, err := of.batch(ctx, put, 1)
				if err == nil {
					_, err = lua.ParseGiven(reply)
				}
				return err
			})
		})
		switch {
		case answered && err == nil && !stray:
			of.acks.Add(number)
		case err != nil && !answered && ctx.Err() == nil: // Redis would have forgotten it, or the client is closed
			return true, fmt.Errorf("%w: %w", session.ErrUnknownOutcome, session.WithSentinel(err))
		case err != nil:
			err = session.WithSentinel(err)
		}
		return answered, err
	})
	if err != nil {
		return session.Wrap(s.base.p.Name, err)
	}
	s.base.p.GaveBack(ctx, n)
	return nil
}

// TrySetPermits sets how many permits are free, from 0 to [MaxCapacity], unless somebody has set it. It reports whether it did.
func (s *Counting) TrySetPermits(ctx context.Context, n int) (bool, error) {
	done, _, _, err := s.base.change(ctx, lua.Initialize, int64(n))
	return done, err
}

// AddPermits changes how many permits are free by n, and returns how many are free then, after those who wait
// got theirs. It may become negative, so that nobody gets any until enough were released. It is done once, as
// [Semaphore.TrySetPermits] says; [ErrNotInitialized] when nobody has set a number.
func (s *Counting) AddPermits(ctx context.Context, n int) (available int, err error) {
	_, total, _, err := s.base.change(ctx, lua.Add, int64(n))
	return int(total), err
}

// Drain takes all permits that are free now, also those that somebody waits for, and returns how many that were: 0 when none
// was, and [ErrNotInitialized] when nobody has set a number.
func (s *Counting) Drain(ctx context.Context) (int, error) {
	_, _, taken, err := s.base.change(ctx, lua.Drain, 0)
	return int(taken), err
}

// Available returns how many permits are free, or [ErrNotInitialized] when nobody has set a number.
func (s *Counting) Available(ctx context.Context) (int, error) {
	state, err := s.base.inspect(ctx, 0)
	return state.Available, err
}

// Waiting returns how many requests wait in the queue.
func (s *Counting) Waiting(ctx context.Context) (int, error) {
	state, err := s.base.inspect(ctx, 0)
	return state.Waiting, err
}

// Delete removes the semaphore. Who waits gets [ErrNotInitialized], or waits on as its options say. It reports whether there
// was one.
func (s *Counting) Delete(ctx context.Context) (bool, error) { return s.base.destroy(ctx) }

func (s *Counting) draw(parent, waits context.Context, n int, try bool) error {
	if err := s.base.validPermits(n, MaxCapacity); err != nil {
		return err
	}
	began := time.Now()
	err := s.take(parent, waits, n, try)
	session.Whole(func() { s.base.p.Attempted(parent, n, began, err) }, func() {
		if err == nil {
			s.base.p.Queue.Go(func() { _ = s.Release(context.Background(), n) })
		}
	})
	return err
}

func (s *Counting) take(parent, waits context.Context, n int, try bool) error {
	number, settled, err := s.base.p.Draw(parent, waits, n, try)
	if settled {
		s.base.pool.acks.Add(number)
	}
	return err
}
