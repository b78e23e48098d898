package semaphore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// When Redis has lost a semaphore, an old client may be the first to say how many permits there are. The
// one that is right says so again after a while, and not the other way round.
func TestCapacityIsSaidAgain(t *testing.T) {
	semaphore.RedeclareAfter(t, time.Millisecond)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		use := func(c *latchkey.Client, n int) *semaphore.Semaphore {
			sem, err := semaphore.New(c, "a", semaphore.WithCapacity(n))
			require.NoError(t, err)
			h, err := sem.Acquire(t.Context(), 1)
			require.NoError(t, err)
			require.NoError(t, h.Release(t.Context()))
			return sem
		}
		capacity := func(sem *semaphore.Semaphore) int {
			n, err := sem.Capacity(t.Context())
			require.NoError(t, err)
			return n
		}
		old, young := use(open(t, s.Option()), 5), use(open(t, s.Option()), 10)
		plain := s.Client(t)
		for range 3 {
			require.Equal(t, 10, capacity(young))
			require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
			require.Equal(t, 5, capacity(old), "nobody else has asked")
			<-time.After(2 * time.Millisecond)
			require.Equal(t, 10, capacity(young))
			<-time.After(2 * time.Millisecond)
			require.Equal(t, 10, capacity(old))
		}
		require.NoError(t, old.SetCapacity(t.Context(), 7))
		<-time.After(2 * time.Millisecond)
		require.Equal(t, 7, capacity(young), "what is said again changes nothing that was set since")
	})
}

// The token of plain permits is no reading of the server's clock: in a cluster, where each name has a
// clock, it would be the first one, and the attempt after it too late, so that it is made again.
func TestPlainPermitsTellNoClock(t *testing.T) {
	redistest.Together(t)
	cluster := redistest.NewClusterOf(t, 1)
	s, c := cluster.Nodes[0], open(t, cluster.Option())
	sem, err := semaphore.NewCounting(c, "a", semaphore.WithCapacity(3))
	require.NoError(t, err)
	require.NoError(t, sem.Acquire(t.Context(), 1))
	before := redistest.Scripts(t, s.Client(t))
	require.NoError(t, sem.TryAcquire(t.Context(), 1))
	require.EqualValues(t, 1, redistest.Scripts(t, s.Client(t))-before)
	require.NoError(t, sem.Release(t.Context(), 2))
}
