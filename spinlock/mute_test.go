package spinlock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// connections are those of a name, and how many of them have a subscription.
func connections(t testing.TB, plain rueidis.Client, name string) (all, subscribed int) {
	t.Helper()
	for line := range strings.Lines(ask(t, plain, "CLIENT", "LIST")) {
		if !strings.Contains(line, " name="+name+" ") {
			continue
		}
		all++
		if !strings.Contains(line, " sub=0 psub=0 ") || strings.Contains(line, " ssub=") && !strings.Contains(line, " ssub=0 ") {
			subscribed++
		}
	}
	return all, subscribed
}

// used locks, waits and unlocks on a client, and checks its connections.
func used(t *testing.T, c *latchkey.Client, plain []rueidis.Client, name string) (all int) {
	t.Helper()
	l := newLock(t, c)
	h := take(t, l)
	require.NoError(t, c.Check(t.Context()))
	next := later(t, l)
	unlock(t, h)
	unlock(t, next.Granted(t))
	for _, p := range plain {
		n, subscribed := connections(t, p, name)
		require.LessOrEqual(t, n, 1)
		require.Zero(t, subscribed)
		all += n
		reply := do(t, p, "PUBSUB", "CHANNELS", "*")
		channels, err := reply.AsStrSlice()
		require.NoError(t, err)
		require.Empty(t, channels)
		require.NotContains(t, ask(t, p, "INFO", "commandstats"), "subscribe:", "there never was one")
	}
	return all
}

// A client without subscriptions has one connection, and subscribes to nothing, however it is made.
func TestSubscribesToNothing(t *testing.T) {
	redistest.Together(t)
	lists := func(t *testing.T) (rueidis.ClientOption, []rueidis.Client) {
		s := redistest.NewProcess(t)
		o := s.Option()
		o.ClientName = "mute"
		return o, []rueidis.Client{s.Client(t)}
	}
	t.Run("open", func(t *testing.T) {
		option, plain := lists(t)
		require.Equal(t, 1, used(t, open(t, option), plain, "mute"))
	})
	t.Run("lazy", func(t *testing.T) {
		option, plain := lists(t)
		option.ForceSingleClient = false
		require.Equal(t, 1, used(t, open(t, option, latchkey.WithLazyConnect()), plain, "mute"))
	})
	t.Run("wrap", func(t *testing.T) {
		option, plain := lists(t)
		option.PipelineMultiplex = -1
		client, err := rueidis.NewClient(option)
		require.NoError(t, err)
		t.Cleanup(client.Close)
		c, err := rueidisclient.Wrap(client, client, latchkey.WithoutPubSub())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.Equal(t, 1, used(t, c, plain, "mute"))
	})
	t.Run("cluster", func(t *testing.T) {
		cluster := redistest.NewCluster(t)
		option := cluster.Option()
		option.ClientName = "mute"
		var plain []rueidis.Client
		for _, s := range cluster.Nodes {
			plain = append(plain, s.Client(t))
		}
		require.LessOrEqual(t, used(t, open(t, option), plain, "mute"), len(plain))
	})
}

// Check says when Redis does not answer, also without a subscription, and when the client is closed.
func TestCheckWithoutPubSub(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	c := open(t, s.Option(), latchkey.WithKeyPrefix("shop:"))
	require.NoError(t, c.Check(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Check(ctx), context.Canceled)
	s.Kill()
	require.ErrorIs(t, c.Check(t.Context()), latchkey.ErrUnavailable)
	s.Start(t)
	require.Eventually(t, func() bool { return c.Check(context.Background()) == nil }, long, soon/100)
	c.Close()
	require.ErrorIs(t, c.Check(t.Context()), latchkey.ErrClosed)
}
