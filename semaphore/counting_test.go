package semaphore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
)

func newCounting(t testing.TB, c *latchkey.Client, opts ...semaphore.CountingOption) *semaphore.Counting {
	t.Helper()
	s, err := semaphore.NewCounting(c, "a", opts...)
	require.NoError(t, err)
	return s
}

func free(t testing.TB, s *semaphore.Counting, n int) {
	t.Helper()
	available, err := s.Available(t.Context())
	require.NoError(t, err)
	require.Equal(t, n, available)
}

func TestCounting(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem, other := newCounting(t, open(t, s.Option())), newCounting(t, open(t, s.Option()))
		require.Equal(t, "a", sem.Name())
		require.ErrorIs(t, sem.Acquire(t.Context(), 1), semaphore.ErrNotSet)
		require.ErrorIs(t, sem.Release(t.Context(), 1), semaphore.ErrNotSet)
		set, err := sem.TrySetPermits(t.Context(), 3)
		require.NoError(t, err)
		require.True(t, set)
		set, err = other.TrySetPermits(t.Context(), 5)
		require.NoError(t, err)
		require.False(t, set)

		require.NoError(t, sem.Acquire(t.Context(), 2))
		free(t, sem, 1)
		require.ErrorIs(t, other.TryAcquire(t.Context(), 2), latchkey.ErrNotAcquired)
		require.ErrorIs(t, other.TryAcquireFor(t.Context(), 2, 20*time.Millisecond), latchkey.ErrNotAcquired)
		require.Eventually(t, func() bool { return other.TryAcquire(t.Context(), 1) == nil }, long, 5*time.Millisecond, "once the one before has left the queue")

		// A request for more than there ever were waits for releases by whom it may be, and nobody passes
		// it.
		var wg sync.WaitGroup
		order := make(chan int, 2)
		for i, n := range []int{4, 1} {
			wg.Go(func() {
				if err := []*semaphore.Counting{sem, other}[i].Acquire(t.Context(), n); err != nil {
					t.Error(err)
				}
				order <- n
			})
			require.Eventually(t, func() bool {
				waiting, err := sem.Waiting(context.Background())
				return err == nil && waiting == i+1
			}, long, 5*time.Millisecond)
		}
		require.NoError(t, other.Release(t.Context(), 3))
		free(t, sem, 3)
		require.NoError(t, other.Release(t.Context(), 1))
		require.Equal(t, 4, <-order)
		require.Empty(t, order)
		n, err := sem.AddPermits(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, 1, n, "the other one was granted at once")
		wg.Wait()
		free(t, sem, 1)

		n, err = sem.AddPermits(t.Context(), -4)
		require.NoError(t, err)
		require.Equal(t, -3, n)
		n, err = sem.Drain(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, sem.Release(t.Context(), 10))
		n, err = sem.Drain(t.Context())
		require.NoError(t, err)
		require.Equal(t, 7, n)
		free(t, sem, 0)

		// A wait that is cancelled takes nothing.
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- sem.Acquire(ctx, 1) }()
		require.Eventually(t, func() bool {
			waiting, err := sem.Waiting(context.Background())
			return err == nil && waiting == 1
		}, long, 5*time.Millisecond)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.NoError(t, sem.Release(t.Context(), 1))
		require.Eventually(t, func() bool {
			n, err := sem.Available(t.Context())
			return err == nil && n == 1
		}, long, 5*time.Millisecond)
		clean(t, s.Client(t), "a", "1")

		existed, err := sem.Delete(t.Context())
		require.NoError(t, err)
		require.True(t, existed)
		existed, err = sem.Delete(t.Context())
		require.NoError(t, err)
		require.False(t, existed)
	})
}

// A budget cannot be set, but for none.
func TestCountingWithoutABudget(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	sem, err := semaphore.NewCounting(c, "budget", semaphore.WithCapacity(1), semaphore.WithoutLocalHandOff())
	require.NoError(t, err)
	require.NoError(t, sem.Acquire(t.Context(), 1))
	require.NoError(t, sem.Release(t.Context(), 1))
	for _, o := range []semaphore.Option{semaphore.WithBudget(1, time.Second), semaphore.WithLease(time.Second), semaphore.WithFixedLease(time.Second)} {
		_, taken := o.(semaphore.CountingOption)
		require.False(t, taken, "the compiler refuses it")
	}
}
