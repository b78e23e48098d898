package semaphore

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/core"
)

// Counting is a plain counter of permits, as Redisson's RSemaphore: nobody owns a permit, there is no lease, and whoever wants
// may release any number, also more than were acquired. So the permits of a process that died do not come back; if that
// matters use [Semaphore]. Any number of goroutines share it. There is no usable zero value: see [NewCounting].
//
// Its requests are granted in the order of arrival, and each is done once although its reply was lost and it was sent again:
// Redis remembers it until its client says that it was answered, and at most ten minutes. A process that dies between being
// granted permits and releasing them keeps them, and [latchkey.Client.Shutdown] does not wait for them: release first.
type Counting core.Counter

// NewCounting returns the plain semaphore of a name. It does no I/O. It takes the options of [New] but for those about leases. It
// returns ErrInvalid for those, for names that are not as for package rlock, a nil client, options out of range, and on a
// client with [latchkey.WithReplicas]: it would not wait for them. Use one name as one kind of thing only: a
// latch is a plain number in Redis, too, as Redisson's are, and nobody can tell the two apart.
func NewCounting(c *latchkey.Client, name string, opts ...Option) (*Counting, error) {
	s, err := core.NewCounter((*core.Client)(c), name, options(opts))
	return (*Counting)(s), err
}

func (s *Counting) core() *core.Counter { return (*core.Counter)(s) }

// Name returns the name that was given to NewCounting.
func (s *Counting) Name() string { return s.core().Name() }

// Acquire waits until n permits were taken or ctx ends; n is from 1 to [MaxCapacity]. Errors are as those of
// [Semaphore.Acquire], but for ErrCapacity: any number may be released some day.
func (s *Counting) Acquire(ctx context.Context, n int) error { return s.core().Acquire(ctx, n) }

// TryAcquire makes one attempt. It returns ErrNotAcquired when there are not enough free permits or somebody waits for them,
// and ErrUnavailable when Redis does not answer within the client's command timeout.
func (s *Counting) TryAcquire(ctx context.Context, n int) error { return s.core().TryAcquire(ctx, n) }

// TryAcquireFor is Acquire for a time of wait at most, which must be more than 0; then it returns
// ErrNotAcquired. When ctx ends by then, by its own deadline or earlier, the error is the context's.
func (s *Counting) TryAcquireFor(ctx context.Context, n int, wait time.Duration) error {
	return s.core().TryAcquireFor(ctx, n, wait)
}

// Release adds n permits, from 1 to [MaxCapacity], and grants them to those who wait. It is sent even when ctx has ended, and
// again until it is answered. Release waits for that until ctx ends, or for the client's release timeout if it has; then it
// returns ErrUnknownOutcome, and the release goes on in the background, for nine minutes, or until the client is closed. It returns
// [ErrNotInitialized], and adds nothing, when nobody has set a number, and ErrInvalid when there would be more than [MaxCapacity].
func (s *Counting) Release(ctx context.Context, n int) error { return s.core().Release(ctx, n) }

// TrySetPermits sets how many permits are free, from 0 to [MaxCapacity], unless somebody has set it. It reports whether it did.
func (s *Counting) TrySetPermits(ctx context.Context, n int) (bool, error) {
	return s.core().TrySetPermits(ctx, n)
}

// AddPermits changes how many permits are free by n, and returns how many are free then, after those who wait
// got theirs. It may become negative, so that nobody gets any until enough were released. It is done once, as
// [Semaphore.TrySetPermits] says; [ErrNotInitialized] when nobody has set a number.
func (s *Counting) AddPermits(ctx context.Context, n int) (available int, err error) {
	return s.core().AddPermits(ctx, n)
}

// Drain takes all permits that are free now, also those that somebody waits for, and returns how many that were: 0 when none
// was, and [ErrNotInitialized] when nobody has set a number.
func (s *Counting) Drain(ctx context.Context) (int, error) { return s.core().Drain(ctx) }

// Available returns how many permits are free, or [ErrNotInitialized] when nobody has set a number.
func (s *Counting) Available(ctx context.Context) (int, error) {
	available, _, err := s.core().Available(ctx)
	return available, err
}

// Waiting returns how many requests wait in the queue.
func (s *Counting) Waiting(ctx context.Context) (int, error) {
	_, waiting, err := s.core().Available(ctx)
	return waiting, err
}

// Delete removes the semaphore. Who waits gets [ErrNotInitialized], or waits on as its options say. It reports whether there
// was one.
func (s *Counting) Delete(ctx context.Context) (bool, error) { return s.core().Delete(ctx) }
