package fairlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// A hand-off costs two scripts in a cluster as well: a client that waits again for a name listens to its
// inbox still, and so its first request may queue.
func TestHandOffsInACluster(t *testing.T) {
	cluster := redistest.NewCluster(t)
	var nodes []rueidis.Client
	for _, s := range cluster.Nodes {
		nodes = append(nodes, s.Client(t))
	}
	scripts := func() (sum int64) {
		for _, n := range nodes {
			sum += redistest.Scripts(t, n)
		}
		return sum
	}
	var locks [2]*latchkey.Lock
	for i := range locks {
		c, err := rueidisclient.New(cluster.Option(), latchkey.WithLease(time.Hour)) // nothing is renewed
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		locks[i], err = fairlock.New(c, "a")
		require.NoError(t, err)
	}
	hold, err := locks[0].Lock(t.Context())
	require.NoError(t, err)
	handOff := func(n int) {
		next := redistest.Begin(t, locks[n%2].Lock)
		require.Eventually(t, func() bool { // the keys are not those of a script, which would count
			for _, c := range nodes {
				if n, err := c.Do(t.Context(), c.B().Llen().Key("latchkey_queue:{a}").Build()).AsInt64(); err == nil && n == 1 {
					return true
				}
			}
			return false
		}, 10*time.Second, time.Millisecond)
		require.NoError(t, hold.Unlock(t.Context()))
		<-next.Ended
		require.NoError(t, next.Err)
		hold = next.Hold
	}
	for n := range 4 {
		handOff(n + 1) // each client has listened, and knows the scripts
	}
	const many = 50
	before := scripts()
	for n := range many {
		handOff(n + 1)
	}
	cost := scripts() - before
	require.NoError(t, hold.Unlock(t.Context()))
	require.LessOrEqual(t, cost, int64(2*many+5), fmt.Sprint("of ", many, " hand-offs"))
}
