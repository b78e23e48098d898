package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// cut ends replication: the replicas are made to log in with a password that the primary does not have.
func (top *topology) cut(t testing.TB, primary *node) {
	t.Helper()
	for _, n := range top.nodes {
		if n != primary {
			n.setMasterAuth(t, "wrong")
		}
	}
	primary.must(t, "CLIENT", "KILL", "TYPE", "replica")
	require.Eventually(t, func() bool {
		connected, err := primary.ask("WAIT", "1", "1")
		n, _ := connected.AsInt64()
		return err == nil && n == 0
	}, 10*time.Second, 5*time.Millisecond, "replication goes on")
}

// setMasterAuth sets the password with which a replica logs in. It is repeated: a Sentinel that makes a node
// a replica of another one ends all connections to it.
func (n *node) setMasterAuth(t testing.TB, password string) {
	t.Helper()
	require.Eventually(t, func() bool {
		m, err := n.ask("CONFIG", "SET", "masterauth", password)
		return err == nil && m.Error() == nil
	}, 10*time.Second, 5*time.Millisecond)
}

// mend ends a cut, on all nodes but one that is dead and forgets it.
func (top *topology) mend(t testing.TB, dead *node) {
	t.Helper()
	for _, n := range top.nodes {
		if n != dead {
			n.setMasterAuth(t, "")
		}
	}
}

// Replication is cut, a lock is taken, the primary dies, and its successor knows nothing of the lock: so it
// is granted twice. Whoever asks for replicas is not granted it the first time. Each round does both, on the
// same servers; that the first does happen shows that the cut works.
func TestFailoverLosesTheWrite(t *testing.T) {
	t.Parallel()
	rounds := int(redistest.Longer(10, 50))
	top := sentinel(t, newEngine(t), takeover)
	servers := top.servers(t)
	holders, others := top.open(t), top.open(t)
	careful := top.open(t, latchkey.WithReplicas(1, 100*time.Millisecond))
	carefulToo := top.open(t, latchkey.WithReplicas(1, time.Second))
	twice, carefully, refused := 0, 0, 0
	for round := range rounds {
		kind := []string{"rlock", "fairlock"}[round%2]
		primary, _ := top.serving(t, "a")
		top.acknowledged(t)
		known := must(t, lock(t, kind, careful, "known")) // before the cut: the successor has it
		top.cut(t, primary)
		h := must(t, lock(t, kind, holders, "quick"))
		limited, stop := context.WithTimeout(t.Context(), time.Minute)
		first, err := lock(t, kind, careful, "careful").Lock(limited)
		stop()
		if err != nil {
			require.ErrorIs(t, err, latchkey.ErrNotReplicated)
			refused++
		}
		primary.kill()
		top.serving(t, "a", primary)
		second := must(t, lock(t, kind, others, "quick"))
		if h.Held() && second.Held() {
			twice++
		}
		require.Greater(t, second.Token(), h.Token())
		top.mend(t, primary)
		again, err := lock(t, kind, carefulToo, "careful").Lock(t.Context())
		for end := time.Now().Add(30 * time.Second); err != nil && time.Now().Before(end); { // until a replica follows the new primary
			again, err = lock(t, kind, carefulToo, "careful").Lock(t.Context())
		}
		require.NoError(t, err)
		if first != nil && first.Held() && again.Held() {
			carefully++
		}
		_, err = lock(t, kind, others, "known").TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "the successor knows what was replicated")
		require.True(t, known.Held())

		select { // the first holder is told as soon as its client asks the new primary
		case <-h.Context().Done():
			require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
		case <-time.After(15 * time.Second):
			require.FailNow(t, "a lost hold is trusted")
		}
		for _, held := range []*latchkey.Hold{second, again, known} {
			require.NoError(t, held.Unlock(t.Context()))
		}
		primary.start()
		top.settled(t)
	}
	t.Logf("%d failovers that lost the write: granted twice %d times, with WithReplicas(1) %d times (refused %d times)", rounds, twice, carefully, refused)
	require.Positive(t, twice, "the cut failed: nothing was shown")
	require.Zero(t, carefully)
	require.Equal(t, rounds, refused)
	servers.Clean(t, false)
}
