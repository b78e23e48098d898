package session_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

const evicts = "redis may evict the keys of locks"

// asksForPolicy reports whether a request is the question for the policy.
func asksForPolicy(request string) bool {
	return strings.Contains(request, "\r\nINFO\r\n") && strings.Contains(request, "memory")
}

// counted returns a proxy, and how often the policy was asked for.
func counted(t *testing.T, s *redistest.Server) (*redistest.Proxy, *atomic.Int64) {
	p, asked := redistest.NewProxy(t, s), new(atomic.Int64)
	p.Judge(func(request string) redistest.Verdict {
		if asksForPolicy(request) {
			asked.Add(1)
		}
		return redistest.Pass
	})
	return p, asked
}

// Whatever drops keys with a time to live is logged, once for each client. Who may not ask is told nothing.
func TestEvictionIsLogged(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	do(t, plain, "ACL", "SETUSER", "shy", "on", ">secret", "~*", "&*", "+@all", "-info")
	shy := func(o rueidis.ClientOption) rueidis.ClientOption {
		o.Username, o.Password = "shy", "secret"
		return o
	}
	bare := func(o rueidis.ClientOption) rueidis.ClientOption { return o }
	nothing := func(*session.Options) {}
	mute := func(o *session.Options) { o.WithoutPubSub = true }
	lazy := func(o *session.Options) { o.Lazy = true }
	for name, c := range map[string]struct {
		policy string
		option func(rueidis.ClientOption) rueidis.ClientOption
		set    func(*session.Options)
		logged int
	}{
		"allkeys":     {"allkeys-lru", bare, nothing, 1},
		"volatile":    {"volatile-ttl", bare, nothing, 1},
		"lazy":        {"allkeys-lru", bare, lazy, 1},
		"mute":        {"allkeys-lru", bare, mute, 1},
		"noeviction":  {"noeviction", bare, nothing, 0},
		"may not ask": {"allkeys-lru", shy, nothing, 0},
	} {
		t.Run(name, func(t *testing.T) {
			do(t, plain, "CONFIG", "SET", "maxmemory-policy", c.policy)
			p, asked := counted(t, s)
			var j locktest.Journal
			client := open(t, c.option(p.Option()), j.Keep, c.set)
			require.Eventually(t, func() bool { return asked.Load() == 1 && j.Says(evicts) == c.logged }, long, 5*time.Millisecond)
			if !client.Options.WithoutPubSub {
				p.KillAll()
				require.Eventually(t, func() bool {
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // its message may be lost
					defer cancel()
					return client.Check(ctx) == nil
				}, long, 5*time.Millisecond)
			}
			closeNow(client)
			require.EqualValues(t, 1, asked.Load())
			require.Equal(t, c.logged, j.Says(evicts))
		})
	}
}

// A cluster is asked as well, and a client that is wrapped.
func TestEvictionElsewhereIsLogged(t *testing.T) {
	redistest.Together(t)
	cluster := redistest.NewCluster(t).Option()
	cluster.PipelineMultiplex, cluster.DisableCache = -1, true
	for name, option := range map[string]rueidis.ClientOption{"cluster": cluster, "standalone": redistest.NewProcess(t).Option()} {
		t.Run(name, func(t *testing.T) {
			client, err := rueidis.NewClient(option)
			require.NoError(t, err)
			t.Cleanup(client.Close)
			for _, node := range client.Nodes() {
				do(t, node, "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
			}
			var j, wrapped locktest.Journal
			open(t, option, j.Keep)
			require.Eventually(t, func() bool { return j.Says(evicts) == 1 }, long, 5*time.Millisecond)
			o := session.DefaultOptions()
			wrapped.Keep(&o)
			c, err := core.Wrap(client, client, o)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return wrapped.Says(evicts) == 1 }, long, 5*time.Millisecond)
			closeNow(c)
		})
	}
}

// A server that does not answer the question holds up nobody: not what follows the confirmation of the inbox,
// and not Close.
func TestEvictionIsNotAnswered(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		var asked, times atomic.Int64
		p.Judge(func(request string) redistest.Verdict {
			switch {
			case asksForPolicy(request):
				asked.Add(1)
				return redistest.Hang
			case strings.Contains(request, "\r\nTIME\r\n"):
				times.Add(1)
			}
			return redistest.Pass
		})
		c, err := core.Open(p.Option(), session.DefaultOptions())
		require.NoError(t, err)
		require.Eventually(t, func() bool { return asked.Load() == 1 }, long, 5*time.Millisecond)
		require.Eventually(t, func() bool { return times.Load() == 2 }, 2*time.Second, time.Millisecond,
			"the time is asked by Open, and after the confirmation: before the silent connection is given up, in three seconds")
		h, err := newLock(t, c, "a", true).TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Unlock(t.Context()))
		closeNow(c)
	})
}
