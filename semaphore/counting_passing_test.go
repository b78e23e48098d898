package semaphore_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// request is an Acquire of a plain permit that runs.
type request = redistest.Attempt[struct{}]

// asks begins to wait for a plain permit. It returns once so many wait in the queue, and so many in the line
// of their process, and the process knows it.
func asks(t testing.TB, sem *semaphore.Counting, inQueue, inLine int) *request {
	t.Helper()
	r := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, sem.Acquire(ctx, 1) })
	waiting(t, sem, inQueue, inLine)
	return r
}

func waiting(t testing.TB, sem *semaphore.Counting, inQueue, inLine int) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := sem.Waiting(t.Context())
		known := inQueue == 0 || semaphore.PlainInQueue(sem) > 0 // else who comes next may compete as well
		return err == nil && n == inQueue && known && semaphore.PlainInLine(sem) == inLine
	}, long, 5*time.Millisecond, "%d in the queue, %d in the line", inQueue, inLine)
}

// plainOfDelegate has sem take the only permit, as a delegate of the line: so it may be passed on.
func plainOfDelegate(t testing.TB, sem, other *semaphore.Counting) {
	t.Helper()
	_, err := other.TrySetPermits(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, other.Acquire(t.Context(), 1))
	first := asks(t, sem, 1, 0)
	second := asks(t, sem, 1, 1)
	require.NoError(t, other.Release(t.Context(), 1))
	first.Granted(t)
	require.NoError(t, sem.Release(t.Context(), 1))
	second.Granted(t)
}

// A permit that nobody holds is passed on in the order in which the goroutines came, without a command. Who
// queues in Redis for them gets the next that comes back.
// Rule 41.
func TestPlainPermitIsPassedOn(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		sem, other := newCounting(t, open(t, s.Option()), yielding), newCounting(t, open(t, s.Option()))
		plainOfDelegate(t, sem, other)
		delegate := asks(t, sem, 1, 0)
		first, second := asks(t, sem, 1, 1), asks(t, sem, 1, 2)
		plain := s.Client(t)
		before := s.Scripts(t)
		require.NoError(t, sem.Release(t.Context(), 1))
		first.Granted(t)
		second.Waits(t)
		require.NoError(t, sem.Release(t.Context(), 1))
		second.Granted(t)
		require.Equal(t, before, s.Scripts(t), "scripts")
		delegate.Waits(t)
		require.NoError(t, sem.Release(t.Context(), 1))
		delegate.Granted(t)
		free(t, sem, 0)
		require.NoError(t, sem.Release(t.Context(), 1))
		free(t, sem, 1)
		clean(t, plain, "a", "1")
	})
}

// Who comes in another process has its turn before those who came after it, since this one is told.
// Rule 41.
func TestPlainPermitYields(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem, other := newCounting(t, open(t, s.Option()), yielding), newCounting(t, open(t, s.Option()))
		plainOfDelegate(t, sem, other)
		delegate := asks(t, sem, 1, 0)
		first := asks(t, sem, 1, 1)
		stranger := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, other.Acquire(ctx, 1) })
		waiting(t, sem, 3, 0) // all of the line went to the queue
		late := asks(t, sem, 4, 0)
		for n, r := range []*request{delegate, stranger, first, late} {
			require.NoError(t, other.Release(t.Context(), 1))
			r.Granted(t)
			for _, later := range []*request{delegate, stranger, first, late}[n+1:] {
				later.Waits(t)
			}
		}
		require.NoError(t, sem.Release(t.Context(), 1))
		free(t, sem, 1)
	})
}

// A process that was not told of another one goes on for so many permits, and for so long. A permit that was
// granted without waiting is not passed on, and neither are several.
// Rule 41.
func TestPlainPermitsGoBack(t *testing.T) {
	s := redistest.NewProcess(t)
	for name, budget := range map[string]semaphore.CountingOption{
		"holds": semaphore.Yielding(1, time.Second),
		"time":  semaphore.Yielding(100, time.Nanosecond),
		"none":  semaphore.WithoutLocalHandOff(),
	} {
		t.Run(name, func(t *testing.T) {
			sem, other := newCounting(t, open(t, s.Option()), budget), newCounting(t, open(t, s.Option()))
			if name == "none" {
				_, err := other.TrySetPermits(t.Context(), 1)
				require.NoError(t, err)
				require.NoError(t, sem.Acquire(t.Context(), 1))
				first, second := asks(t, sem, 1, 0), asks(t, sem, 2, 0)
				require.NoError(t, sem.Release(t.Context(), 1))
				first.Granted(t)
				second.Waits(t)
				require.NoError(t, sem.Release(t.Context(), 1))
				second.Granted(t)
			} else {
				plainOfDelegate(t, sem, other)
				delegate := asks(t, sem, 1, 0)
				first, second := asks(t, sem, 1, 1), asks(t, sem, 1, 2)
				require.NoError(t, sem.Release(t.Context(), 1))
				order := []*request{first, delegate, second}
				if name == "time" {
					order = []*request{delegate, first, second}
				}
				for n, r := range order {
					r.Granted(t)
					for _, later := range order[n+1:] {
						later.Waits(t)
					}
					require.NoError(t, sem.Release(t.Context(), 1))
				}
			}
			if name == "none" {
				require.NoError(t, sem.Release(t.Context(), 1))
			}
			free(t, sem, 1)
			_, err := sem.Delete(t.Context())
			require.NoError(t, err)
		})
	}
}

// However waits end, and whichever process gives back what another one has acquired, no permit gets lost, and
// there is none too many.
// Rule 41.
func TestPlainPermitsArePassedOnAtRandom(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const capacity = 3
		var all []*semaphore.Counting
		for range 2 {
			all = append(all, newCounting(t, open(t, s.Option()), semaphore.WithCapacity(capacity), yielding))
		}
		var inside, most, ended, had atomic.Int64
		var wg sync.WaitGroup
		for n := range 16 {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			wg.Go(func() {
				mine := all[min(n/12, 1)]
				for range redistest.Rounds(150, 150) {
					patience := time.Duration(random.IntN(3000)) * time.Microsecond
					if random.IntN(4) == 0 {
						patience = long
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					err := mine.Acquire(ctx, 1)
					cancel()
					if err != nil {
						ended.Add(1)
						continue
					}
					had.Add(1)
					now := inside.Add(1)
					for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
					}
					inside.Add(-1)
					if random.IntN(8) == 0 {
						err = all[random.IntN(2)].Release(t.Context(), 1)
					} else {
						err = mine.Release(t.Context(), 1)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, most.Load(), int64(capacity))
		require.Positive(t, ended.Load())
		require.Positive(t, had.Load())
		require.Eventually(t, func() bool {
			n, err := all[0].Available(t.Context())
			return err == nil && n == capacity
		}, long, 5*time.Millisecond, "a permit was lost, or was given twice")
	})
}
