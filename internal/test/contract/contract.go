// Package contract is what the primitives promise, as tests that are written once and run on every kind of
// servers: here on processes and the embedded server, and by the module integration on standalone servers,
// Sentinel and Cluster in containers. Each primitive has a function of its own.
package contract

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// Servers are what a contract is run on.
type Servers struct {
	Option func() rueidis.ClientOption // how clients reach them
	Plain  func() []rueidis.Client     // a plain client of each node that can be written to; the same at each call

	Options  []latchkey.Option // of all clients
	Replicas int               // what is acquired must have reached so many

	// Apart makes servers of the same kind for a test alone. With it kinds of locks wait beside each other; nil: they
	// share these servers, one after the other.
	Apart func(t *testing.T) Servers

	// Slow is how much later than elsewhere something may happen there. With two seconds a client has asked by
	// itself: what it would have been told is for other servers to show.
	Slow time.Duration
}

// long is how long a test waits for what must happen before it gives up.
const long = 20 * time.Second

// prompt is less than any client waits before it asks again by itself.
const prompt = 1500 * time.Millisecond

// soon is how much later than promised something may happen, because the machine may be busy. No client asks
// by itself so soon.
const soon = 900 * time.Millisecond

// lasts checks how long something has taken since it began.
func lasts(t testing.TB, began time.Time, d time.Duration) {
	t.Helper()
	require.WithinRange(t, time.Now(), began.Add(d-100*time.Millisecond), began.Add(d+soon))
}

// each runs the tests of one kind, and sees that they leave nothing behind.
func (s Servers) each(t *testing.T, name string, tests func(t *testing.T, s Servers)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		own := s
		if s.Apart != nil {
			t.Parallel()
			own = s.Apart(t)
		}
		tests(t, own)
		own.Clean(t, true)
	})
}

// open returns a client that is closed with the test.
func (s Servers) open(t testing.TB, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	return s.openAs(t, ours, opts...)
}

// leased is open, of a client with a short lease. Replicas must have what it acquires before that ends.
func (s Servers) leased(t testing.TB, lease time.Duration) *latchkey.Client {
	t.Helper()
	return s.open(t, latchkey.WithLease(lease), latchkey.WithReplicas(s.Replicas, lease*2/3))
}

// ours is the name of the connections of the clients under test. Sentinels have connections of their own.
const ours = "contract"

func (s Servers) openAs(t testing.TB, name string, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	o := s.Option()
	o.ClientName = name
	patient := latchkey.WithReplicas(s.Replicas, 3*time.Second) // no replica is silent, and a busy machine takes its time
	c, err := rueidisclient.New(o, slices.Concat(s.Options, []latchkey.Option{patient}, opts)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Check(t.Context()))
	return c
}

// do sends a command to every node.
func (s Servers) do(t testing.TB, args ...string) (replies []rueidis.RedisMessage) {
	t.Helper()
	for _, c := range s.Plain() {
		m, err := c.Do(context.Background(), c.B().Arbitrary(args...).Build()).ToMessage()
		if !rueidis.IsRedisNil(err) {
			require.NoError(t, err, "%v", args)
		}
		replies = append(replies, m)
	}
	return replies
}

// keys returns those of all nodes, with the time to live of each in ms, negative without one.
func (s Servers) keys(t testing.TB) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, c := range s.Plain() {
		names, err := c.Do(context.Background(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
		require.NoError(t, err)
		for _, name := range names {
			ttl, err := c.Do(context.Background(), c.B().Pttl().Key(name).Build()).AsInt64()
			require.NoError(t, err)
			all[name] = ttl
		}
	}
	return all
}

// channels returns the channels that have a subscriber, but for those of Sentinel.
func (s Servers) channels(t testing.TB) (all []string) {
	t.Helper()
	for _, kind := range []string{"CHANNELS", "SHARDCHANNELS"} {
		for _, c := range s.Plain() {
			names, err := c.Do(context.Background(), c.B().Arbitrary("PUBSUB", kind, "[^_]*_*").Build()).AsStrSlice()
			if _, refused := rueidis.IsRedisErr(err); refused && kind == "SHARDCHANNELS" {
				continue // before Redis 7, and embedded
			}
			require.NoError(t, err)
			all = append(all, names...)
		}
	}
	return all
}

// kept is what stays for a while: token counters, the state of a read-write lock, the shortest lease of those
// who waited, which of them were called, what was said of a capacity, what became of a latch, what is run once, and barriers with their
// members, when a client could not say that it leaves.
var kept = []string{
	"redisson_lock_token:", "latchkey_rwlock:", "latchkey_pace:", "latchkey_called:", "latchkey_token:", "latchkey_done:", "latchkey_latch:", "barrier:", "latchkey_members:", "latchkey_fence:", "latchkey_leader:",
	"latchkey_once:", "latchkey_share:", "latchkey_every:", "latchkey_runs:", "latchkey_pause:", "latchkey_client:", "latchkey_forced:", "latchkey_turns:", "latchkey_holdoff:",
}

// Clean checks that nothing is left but what expires: no lock, no queue, and no inbox once the clients are
// closed.
func (s Servers) Clean(t testing.TB, closed bool) {
	t.Helper()
	var left []string
	require.Eventually(t, func() bool {
		left = nil
		for name, ttl := range s.keys(t) {
			if ttl == -2 || ttl > 0 && slices.ContainsFunc(kept, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				continue
			}
			left = append(left, fmt.Sprintf("%s (ttl %d)", name, ttl))
		}
		if closed {
			left = append(left, s.channels(t)...)
		}
		return len(left) == 0
	}, long, 10*time.Millisecond, "left behind: %v", &left)
}

// kill closes the connections of a kind that the clients under test have, and returns how many there were.
// Those of Sentinel stay: it would take the server for dead.
func (s Servers) kill(t testing.TB, kind string) (killed int) {
	t.Helper()
	for _, c := range s.Plain() {
		list, err := c.Do(t.Context(), c.B().Arbitrary("CLIENT", "LIST", "TYPE", kind).Build()).ToString()
		require.NoError(t, err)
		for line := range strings.Lines(list) {
			if strings.Contains(line, " name="+ours+" ") {
				_, id, _ := strings.Cut(line, "id=")
				n, err := c.Do(t.Context(), c.B().Arbitrary("CLIENT", "KILL", "ID", strings.Fields(id)[0]).Build()).AsInt64()
				require.NoError(t, err)
				killed += int(n)
			}
		}
	}
	return killed
}

// connections counts those of a name, to all nodes.
func (s Servers) connections(t testing.TB, name string) (n int) {
	t.Helper()
	for _, m := range s.do(t, "CLIENT", "LIST") {
		text, err := m.ToString()
		require.NoError(t, err)
		n += strings.Count(text, " name="+name+" ")
	}
	return n
}
