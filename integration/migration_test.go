package integration

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/contract"
)

// id is a node's in its cluster.
func (n *node) id(t testing.TB) string { t.Helper(); return n.must(t, "CLUSTER", "MYID") }

// A slot moves to another node while a waiter waits: with its keys under way (ASK), and after that (MOVED).
// The holder's release reaches it, and the waiter is woken there, not later than it would have asked by
// itself.
func TestSlotMigration(t *testing.T) {
	t.Parallel()
	top := cluster(t, newEngine(t), calm)
	servers := top.servers(t)
	for kind := range contract.AllKinds {
		for _, halfway := range []bool{false, true} {
			name := map[bool]string{false: "moved", true: "being moved"}[halfway]
			t.Run(kind+"/"+name, func(t *testing.T) {
				key := kind + ":" + strconv.FormatBool(halfway)
				a, b := lock(t, kind, top.open(t), key), lock(t, kind, top.open(t), key)
				h := must(t, a)
				next := contract.Wait(t, b, 0)
				from, _ := top.serving(t, key)
				slot := from.must(t, "CLUSTER", "KEYSLOT", key)
				to := top.otherPrimary(t, from)
				to.must(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.id(t))
				from.must(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.id(t))
				move := func(keys ...string) {
					host, port := to.hostPort(t)
					from.must(t, append([]string{"MIGRATE", host, port, "", "0", "5000", "KEYS"}, keys...)...)
				}
				finish := func() {
					for _, n := range []*node{to, from} {
						n.must(t, "CLUSTER", "SETSLOT", slot, "NODE", to.id(t))
					}
				}
				move(key, "latchkey_queue:{"+key+"}", "redisson_lock_token:{"+key+"}")
				began := time.Now()
				if !halfway {
					finish()
					began = time.Now()
				}
				unlocked := unlockLater(h)
				if halfway {
					finish() // while the release is under way
				}
				got := next.Granted(t)
				t.Logf("granted %v after the move", next.At.Sub(began).Round(time.Millisecond))
				require.Less(t, next.At.Sub(began), 2500*time.Millisecond, "the poll cap, and a look at the cluster")
				require.NoError(t, <-unlocked)
				require.Greater(t, got.Token(), h.Token())
				require.NoError(t, got.Unlock(t.Context()))
				takeTurns(t, got.Token(), a, b)

				// The next one waits on the new node, and is woken there by its message.
				h = must(t, a)
				next = contract.Wait(t, b, 0)
				released := time.Now()
				require.NoError(t, h.Unlock(t.Context()))
				got = next.Granted(t)
				require.Less(t, next.At.Sub(released), 500*time.Millisecond)
				require.NoError(t, got.Unlock(t.Context()))
			})
		}
	}
	servers.Clean(t, true)
}

// otherPrimary is one that is not this node.
func (top *topology) otherPrimary(t testing.TB, not *node) *node {
	t.Helper()
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if n, _ := top.serving(t, key); n != not {
			return n
		}
	}
	require.FailNow(t, "one node has all slots")
	return nil
}
