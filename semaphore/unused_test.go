package semaphore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// A stated semaphore stays while any client uses it, also one that states nothing. Unused it goes, until a client
// states it again.
func TestUnusedSemaphore(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		clients := []*latchkey.Client{open(t, s.Option()), open(t, s.Option())}
		states, err := semaphore.New(clients[0], "a", semaphore.WithCapacity(3))
		require.NoError(t, err)
		require.NoError(t, acquire(t, states, 1).Release(t.Context()))
		clients[0].Close()
		uses, err := semaphore.New(clients[1], "a")
		require.NoError(t, err)
		for range 30 {
			time.Sleep(50 * time.Minute)
			require.NoError(t, acquire(t, uses, 1).Release(t.Context()))
		}
		clients[1].Close()
		time.Sleep(25 * time.Hour)
		plain := s.Client(t)
		left, err := plain.Do(t.Context(), plain.B().Exists().Key("a").Build()).AsInt64()
		require.NoError(t, err)
		require.Zero(t, left)

		states, err = semaphore.New(open(t, s.Option()), "a", semaphore.WithCapacity(3))
		require.NoError(t, err)
		require.NoError(t, acquire(t, states, 3).Release(t.Context()))
		free, err := states.Available(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, free)
	})
}
