package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/contract"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// A hand-off in a cluster is told to the shard of the lock alone: nothing is broadcast to all nodes, as
// PUBLISH would be.
func TestClusterBus(t *testing.T) {
	t.Parallel()
	top := cluster(t, newEngine(t), calm)
	sent := func(kind string) int { return top.info(t, "cluster_stats_messages_"+kind+"_sent", "CLUSTER", "INFO") }
	primary, _ := top.serving(t, "a")
	require.Eventually(t, func() bool { // the primary knows of its replica, and reaches it
		primary.must(t, "SPUBLISH", "{a}probe", "")
		return sent("publishshard") > 0
	}, 20*time.Second, 50*time.Millisecond)
	for kind := range contract.Kinds {
		t.Run(kind, func(t *testing.T) {
			a, b := lock(t, kind, top.open(t), "a"), lock(t, kind, top.open(t), "a")
			h := must(t, a)
			contract.Wait(t, b, 0).Cancel() // both have been connected to whatever they need
			require.NoError(t, h.Unlock(t.Context()))
			h = must(t, b)
			contract.Wait(t, a, 0).Cancel()
			require.NoError(t, h.Unlock(t.Context()))

			const handOffs = 100
			broadcast, inShard := sent("publish"), sent("publishshard")
			h = must(t, a)
			locks := []*latchkey.Lock{a, b}
			for n := range handOffs {
				next := contract.Wait(t, locks[(n+1)%2], 0)
				require.NoError(t, h.Unlock(t.Context()))
				h = next.Granted(t)
			}
			require.NoError(t, h.Unlock(t.Context()))
			broadcast, inShard = sent("publish")-broadcast, sent("publishshard")-inShard
			t.Logf("%d hand-offs: %d broadcasts, %d messages to the replica of the lock's shard", handOffs, broadcast, inShard)
			require.Zero(t, broadcast)
			require.Positive(t, inShard, "they are counted")
			require.LessOrEqual(t, inShard, handOffs+10, "one to each replica of the shard")
		})
	}
}

// What one client opens: the client of the docs, and nothing that grows with its locks or waiters.
func TestConnections(t *testing.T) {
	t.Parallel()
	for name, expected := range map[string]struct{ nodes, sentinels int }{
		"standalone": {2, 0},  // commands, subscription
		"sentinel":   {2, 1},  // the same, to the primary; and one to a sentinel
		"cluster":    {12, 0}, // the same, to each node: rueidis asks all of them for the slots
	} {
		t.Run(name, func(t *testing.T) {
			top := topologies[name](t, newEngine(t), calm)
			o := top.option()
			o.ClientName, o.Sentinel.ClientName = "counted", "counted"
			c, err := rueidisclient.New(o)
			require.NoError(t, err)
			other := top.open(t)
			for kind := range contract.Kinds {
				for n := range 20 {
					key := fmt.Sprint(kind, n)
					h := must(t, lock(t, kind, other, key))
					w := contract.Wait(t, lock(t, kind, c, key), 0)
					require.NoError(t, h.Unlock(t.Context()))
					require.NoError(t, w.Granted(t).Unlock(t.Context()))
				}
			}
			named := func(nodes []*node) (n int) {
				for _, node := range nodes {
					n += strings.Count(node.must(t, "CLIENT", "LIST"), " name=counted ")
				}
				return n
			}
			t.Logf("%d connections to nodes, %d to sentinels", named(top.nodes), named(top.sentinels))
			require.LessOrEqual(t, named(top.nodes), expected.nodes)
			require.Equal(t, expected.sentinels, named(top.sentinels))
			c.Close()
			require.Eventually(t, func() bool { return named(top.nodes)+named(top.sentinels) == 0 }, 10*time.Second, 10*time.Millisecond)
		})
	}
}
