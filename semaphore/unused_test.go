package semaphore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// A stated semaphore stays while any client uses it, also one that states nothing. Unused it goes, until a client
// states it again.
func TestUnusedSemaphore(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		states, err := semaphore.New(open(t, s.Option()), "a", semaphore.WithCapacity(3))
		require.NoError(t, err)
		require.NoError(t, acquire(t, states, 1).Release(t.Context()))
		uses, err := semaphore.New(open(t, s.Option()), "a")
		require.NoError(t, err)
		for range 3 * 24 * 2 {
			time.Sleep(30 * time.Minute)
			require.NoError(t, acquire(t, uses, 1).Release(t.Context()))
		}
		time.Sleep(25 * time.Hour)
		plain := s.Client(t)
		left, err := plain.Do(t.Context(), plain.B().Exists().Key("a").Build()).AsInt64()
		require.NoError(t, err)
		require.Zero(t, left)
		_, err = uses.TryAcquire(t.Context(), 1)
		require.ErrorIs(t, err, semaphore.ErrNotInitialized)

		require.NoError(t, acquire(t, states, 3).Release(t.Context()))
		free, err := states.Available(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, free)
	})
}
