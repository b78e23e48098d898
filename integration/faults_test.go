package integration

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/redis/rueidis"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/contract"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// wire is a proxy between clients and one server, and what it does to what passes.
type wire struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

func newWire(t testing.TB, n *node) *wire {
	t.Helper()
	upstream, err := n.engine.reach(t.Context(), n.addr)
	require.NoError(t, err)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", upstream)
	require.NoError(t, p.Start())
	t.Cleanup(p.Stop)
	return &wire{t: t, proxy: p}
}

func (n *wire) open(opts ...latchkey.Option) *latchkey.Client {
	n.t.Helper()
	o := rueidis.ClientOption{
		InitAddress: []string{n.proxy.Listen}, ForceSingleClient: true, ConnWriteTimeout: time.Second,
		Dialer: net.Dialer{Timeout: time.Second, KeepAlive: 300 * time.Millisecond},
	}
	c, err := rueidisclient.New(o, opts...)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = c.Close() })
	require.NoError(n.t, c.Check(n.t.Context()))
	return c
}

// toxic does something to all that passes in both directions, until it is undone.
func (n *wire) toxic(kind string, attributes map[string]int64) (undo func()) {
	n.t.Helper()
	for _, stream := range []string{"upstream", "downstream"} {
		text, err := json.Marshal(map[string]any{"name": kind + stream, "type": kind, "stream": stream, "toxicity": 1, "attributes": attributes})
		require.NoError(n.t, err)
		_, err = n.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
		require.NoError(n.t, err)
	}
	return func() {
		n.t.Helper()
		for _, stream := range []string{"upstream", "downstream"} {
			require.NoError(n.t, n.proxy.Toxics.RemoveToxic(context.Background(), kind+stream))
		}
	}
}

// A network that swallows everything: the holder knows when its lease is over, and not later; whoever waits
// gets the lock once the network is back.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	top := standalone(t, newEngine(t))
	servers := top.servers(t)
	for kind := range contract.AllKinds {
		t.Run(kind, func(t *testing.T) {
			const lease = 1500 * time.Millisecond
			n := newWire(t, top.nodes[0])
			a, b := lock(t, kind, n.open(latchkey.WithLease(lease)), "a"), lock(t, kind, n.open(), "a")
			h := must(t, a)
			next := contract.Wait(t, b, 0)
			undo := n.toxic("timeout", map[string]int64{"timeout": 0})
			began := time.Now()
			trusted := h.Remaining()
			<-h.Context().Done()
			require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
			// Neither sooner nor later, but for what the machine takes.
			require.WithinRange(t, time.Now(), began.Add(trusted-100*time.Millisecond), began.Add(trusted+500*time.Millisecond))
			require.False(t, h.Held())
			undo()
			back := time.Now()
			got := next.Granted(t)
			t.Logf("granted %v after the network is back", next.At.Sub(back).Round(time.Millisecond))
			require.Less(t, next.At.Sub(back), 2*time.Second, "connections to be dialled again")
			require.NoError(t, got.Unlock(t.Context()))
			require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
			takeTurns(t, got.Token(), a, b)
		})
	}
	servers.Clean(t, true)
}

// Replies that take long cost time, and nothing else: no hold is lost, and none is trusted for longer than
// its lease.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	top := standalone(t, newEngine(t))
	servers := top.servers(t)
	for kind := range contract.AllKinds {
		t.Run(kind, func(t *testing.T) {
			const lease, way = 4 * time.Second, 100 * time.Millisecond // renewed 2.6 s before its end: longer than a container stands still
			n := newWire(t, top.nodes[0])
			a, b := lock(t, kind, n.open(latchkey.WithLease(lease)), "a"), lock(t, kind, n.open(latchkey.WithLease(lease)), "a")
			defer n.toxic("latency", map[string]int64{"latency": way.Milliseconds()})()
			h := must(t, a)
			require.LessOrEqual(t, h.Remaining(), lease-2*way, "what the trip took is not trusted")
			next := contract.Wait(t, b, 0)
			require.Never(t, func() bool { return !h.Held() }, lease+lease/2, 10*time.Millisecond)
			require.NoError(t, h.Unlock(t.Context()))
			got := next.Granted(t)
			require.LessOrEqual(t, got.Remaining(), lease-way)
			require.NoError(t, got.Unlock(t.Context()))
		})
	}
	servers.Clean(t, true)
}

// States in which a server answers, but does not serve.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	top := standalone(t, newEngine(t))
	servers := top.servers(t)
	n := top.nodes[0]
	for name, state := range map[string]struct {
		begin, end func(t *testing.T)
		errors     bool // at once, rather than being waited out
		releases   bool // a release works all the same
	}{
		"paused": {
			begin: func(t *testing.T) { n.must(t, "CLIENT", "PAUSE", "700", "WRITE") },
			end:   func(*testing.T) { <-time.After(700 * time.Millisecond) },
		},
		"read-only": {
			begin: func(t *testing.T) { n.must(t, "REPLICAOF", "127.0.0.1", "1") },
			end:   func(t *testing.T) { n.must(t, "REPLICAOF", "NO", "ONE") },
		},
		"out of memory": {
			begin:  func(t *testing.T) { n.must(t, "CONFIG", "SET", "maxmemory", "1") },
			end:    func(t *testing.T) { n.must(t, "CONFIG", "SET", "maxmemory", "0") },
			errors: true, releases: true,
		},
	} {
		for kind := range contract.Kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				a, b := lock(t, kind, top.open(t), "a"), lock(t, kind, top.open(t), "b")
				h := must(t, a)
				require.NoError(t, must(t, b).Unlock(t.Context())) // the scripts are known
				state.begin(t)
				waiter := make(chan error, 1)
				var got *latchkey.Hold
				go func() {
					var err error
					got, err = b.Lock(t.Context())
					waiter <- err
				}()
				if state.errors {
					require.Error(t, <-waiter)
				} else {
					require.Never(t, func() bool { return len(waiter) > 0 }, 300*time.Millisecond, 10*time.Millisecond)
				}
				if state.releases {
					require.NoError(t, h.Unlock(t.Context()))
				}
				state.end(t)
				ended := time.Now()
				if !state.errors {
					require.NoError(t, <-waiter)
					require.Less(t, time.Since(ended), atOnce)
					require.NoError(t, got.Unlock(t.Context()))
				}
				if !state.releases {
					require.NoError(t, h.Unlock(t.Context()))
				}
				takeTurns(t, h.Token(), a)
			})
		}
	}
	servers.Clean(t, true)
}
