package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/contract"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// open returns a client that is closed with the test.
func (top *topology) open(t testing.TB, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	c, err := rueidisclient.New(top.option(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Check(t.Context()))
	return c
}

func lock(t testing.TB, kind string, c *latchkey.Client, name string) *latchkey.Lock {
	t.Helper()
	l, err := contract.AllKinds[kind](c, name, 0)
	require.NoError(t, err)
	return l
}

func must(t testing.TB, l *latchkey.Lock) *latchkey.Hold {
	t.Helper()
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	return h
}

// takeTurns locks and unlocks by turns, and checks that tokens grow from the last one.
func takeTurns(t testing.TB, last int64, locks ...*latchkey.Lock) {
	t.Helper()
	for range 10 {
		for _, l := range locks {
			h := must(t, l)
			require.Greater(t, h.Token(), last)
			last = h.Token()
			require.NoError(t, h.Unlock(t.Context()))
		}
	}
}

// unlockLater unlocks while nobody may answer, and returns what came of it.
func unlockLater(h *latchkey.Hold) <-chan error {
	result := make(chan error, 1)
	go func() { result <- h.Unlock(context.Background()) }()
	return result
}

// soon is how long after Redis can be written to again the first waiter has its lock at the latest. It is
// less than a second as a rule, which the log shows: but rueidis looks at a cluster up to a second after a
// command has failed, and a stopped node may keep a dial or a probe for a while. Without a look of its own it
// would be a lease.
const soon = 2500 * time.Millisecond

// atOnce is the same when the server is the one that it was.
const atOnce = time.Second

// outages are what makes a primary go away, and come back.
var outages = map[string]struct{ begin, end func(*node) }{
	"killed":  {func(n *node) { n.kill() }, func(n *node) { n.start() }},
	"stopped": {func(n *node) { n.stop() }, func(n *node) { n.resume() }},
}

// A primary goes away with a holder and a waiter in place, and a replica takes over. The lock and its queue
// were replicated: the holder keeps it, and hands it on at the new primary. Then the old one comes back.
func TestFailover(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sentinel", "cluster"} {
		for outage, fault := range outages {
			t.Run(name+"/"+outage, func(t *testing.T) {
				t.Parallel()
				top := topologies[name](t, newEngine(t), takeover)
				servers := top.servers(t)
				for kind := range contract.AllKinds {
					t.Run(kind, func(t *testing.T) {
						top.settled(t)
						a, b := lock(t, kind, top.open(t), "a"), lock(t, kind, top.open(t), "a")
						primary, _ := top.serving(t, "a")
						h := must(t, a)
						next := contract.Wait(t, b, 0)
						top.copied(t, primary, "a", "latchkey_queue:{a}")
						fault.begin(primary)
						began := time.Now()
						unlocked := unlockLater(h)
						_, writable := top.serving(t, "a", primary)
						got := next.Granted(t)
						t.Logf("writable again after %v; granted %v after that", writable.Sub(began).Round(time.Millisecond),
							next.At.Sub(writable).Round(time.Millisecond))
						require.Less(t, next.At.Sub(writable), soon)
						require.Greater(t, got.Token(), h.Token())
						require.NoError(t, <-unlocked)
						require.True(t, got.Held())
						require.NoError(t, got.Unlock(t.Context()))
						takeTurns(t, got.Token(), a, b)
						fault.end(primary)
						takeTurns(t, got.Token(), a, b)
					})
				}
				t.Run("latch and barrier", func(t *testing.T) { releasedByTheSuccessor(t, top, fault.begin, fault.end) })
				t.Run("leader", func(t *testing.T) { ledByTheSuccessor(t, top, fault.begin, fault.end) })
				top.settled(t)
				servers.Clean(t, true)
			})
		}
	}
}

// releasedByTheSuccessor has somebody wait for a latch and at a barrier while their primary goes away: they
// go on when its successor is told what they wait for.
func releasedByTheSuccessor(t *testing.T, top *topology, begin, end func(*node)) {
	top.settled(t)
	const latch, step = "latch{z}", "barrier:{z}step"
	newLatch := func() *countdown.Latch {
		l, err := countdown.New(top.open(t), latch, countdown.WithTTL(5*time.Minute))
		require.NoError(t, err)
		return l
	}
	newBarrier := func() *barrier.Barrier {
		b, err := barrier.New(top.open(t), step, 2)
		require.NoError(t, err)
		return b
	}
	mine, other, first, second := newLatch(), newLatch(), newBarrier(), newBarrier()
	primary, _ := top.serving(t, "z")
	set, err := mine.TrySetCount(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, set)
	run := func(f func() error) <-chan time.Time {
		ended := make(chan time.Time, 1)
		go func() {
			if err := f(); err != nil {
				t.Error(err)
			}
			ended <- time.Now()
		}()
		return ended
	}
	ctx := t.Context()
	opened := run(func() error { return other.Await(ctx) })
	passed := run(func() error { _, err := first.Await(ctx); return err })
	top.copied(t, primary, latch, "latchkey_latch:"+latch, step, "latchkey_arrivals:"+step)
	begin(primary)
	counted := run(func() error { _, err := mine.CountDown(ctx); return err })
	arrived := run(func() error { _, err := second.Await(ctx); return err })
	_, writable := top.serving(t, "z", primary)
	for what, ended := range map[string]<-chan time.Time{"counted": counted, "open": opened, "arrived": arrived, "passed": passed} {
		after := (<-ended).Sub(writable)
		t.Logf("%s %v after Redis was writable again", what, after.Round(time.Millisecond))
		require.Less(t, after, soon)
	}
	end(primary)
	require.NoError(t, mine.Await(ctx))
}

// copied waits until the replicas have what the primary has of a key: all of Sentinel's, and one of a
// cluster, where the others belong to other primaries.
func (top *topology) copied(t testing.TB, primary *node, keys ...string) {
	t.Helper()
	replicas := len(top.nodes) - 1
	if top.cluster {
		replicas = 1
	}
	require.Eventually(t, func() bool {
		found := 0
		for _, n := range top.nodes {
			m, err := n.read(append([]string{"EXISTS"}, keys...)...)
			if exists, _ := m.AsInt64(); n != primary && err == nil && int(exists) == len(keys) {
				found++
			}
		}
		return found >= replicas
	}, 10*time.Second, 5*time.Millisecond, "the replicas do not have %v", keys)
}

// settled waits until all nodes are what they should be. A former primary of Sentinel's is made a replica at
// once: the sentinels would take ten seconds.
func (top *topology) settled(t testing.TB) {
	t.Helper()
	if len(top.sentinels) == 0 {
		require.Eventually(t, top.replicated, 60*time.Second, 20*time.Millisecond, "the nodes do not settle")
		return
	}
	primary := top.elected(t)
	host, port := primary.hostPort(t)
	for _, n := range top.nodes {
		if info := n.must(t, "INFO", "replication"); n != primary && strings.Contains(info, "role:master") {
			n.must(t, "REPLICAOF", host, port)
		}
	}
	top.healthy(t)
}
