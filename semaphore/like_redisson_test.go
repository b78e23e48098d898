package semaphore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// Redisson's tests show these as well: docs/appendix/redisson-tests.md.

// A wait with an end has its permits when they are released before that.
func TestTryAcquireForIsGranted(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := open(t, s.Option()), open(t, s.Option())
		first, err := semaphore.New(a, "leased", semaphore.WithCapacity(5))
		require.NoError(t, err)
		second, err := semaphore.New(b, "leased", semaphore.WithCapacity(5))
		require.NoError(t, err)
		held, err := first.Acquire(t.Context(), 5)
		require.NoError(t, err)
		got := make(chan error)
		go func() {
			permits, err := second.TryAcquireFor(t.Context(), 4, 20*time.Second)
			if err == nil {
				err = permits.Release(t.Context())
			}
			got <- err
		}()
		require.NoError(t, held.ReleaseN(t.Context(), 3))
		require.NoError(t, held.ReleaseN(t.Context(), 1))
		require.NoError(t, <-got)
		require.NoError(t, held.Release(t.Context()))

		plain, other := newCounting(t, a), newCounting(t, b)
		_, err = plain.TrySetPermits(t.Context(), 2)
		require.NoError(t, err)
		go func() { got <- other.TryAcquireFor(t.Context(), 4, 20*time.Second) }()
		require.NoError(t, plain.Release(t.Context(), 1))
		require.NoError(t, plain.Release(t.Context(), 1))
		require.NoError(t, <-got)
		free(t, plain, 0)
	})
}

// Requests for all that there can be, and for one, have their turns.
func TestAllOrOne(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		clients := []*latchkey.Client{open(t, s.Option()), open(t, s.Option())}
		_, err := newCounting(t, clients[0]).TrySetPermits(t.Context(), semaphore.MaxCapacity)
		require.NoError(t, err)
		var g sync.WaitGroup
		for n := range 4 {
			sem := newCounting(t, clients[n%2])
			g.Go(func() {
				for round := range 20 {
					permits := 1
					if (round+n)%2 == 0 {
						permits = semaphore.MaxCapacity
					}
					if err := sem.Acquire(t.Context(), permits); err != nil {
						t.Error(err)
						return
					}
					if err := sem.Release(t.Context(), permits); err != nil {
						t.Error(err)
					}
				}
			})
		}
		g.Wait()
		free(t, newCounting(t, clients[0]), semaphore.MaxCapacity)
	})
}
