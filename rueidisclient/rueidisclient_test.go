package rueidisclient_test

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

func TestRefuses(t *testing.T) {
	_, err := rueidisclient.New(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}, ReplicaOnly: true})
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = rueidisclient.Wrap(nil, nil)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = rueidisclient.New(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}})
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
}

// A program that has many clients, as one for each tenant, pays little memory for each.
func TestClientIsSmall(t *testing.T) {
	s := redistest.New(t)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	option := s.Option()
	option.ReadBufferEachConn, option.WriteBufferEachConn, option.RingScaleEachConn = 0, 0, 0 // as users leave them
	before := heap()
	const clients = 20
	for range clients {
		c, err := rueidisclient.New(option)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
	}
	require.Less(t, int(heap()-before)/clients, 450_000, "bytes")
}

func TestWrapOwnsNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		commands, subscriptions := s.Client(t), s.Client(t)
		c, err := rueidisclient.Wrap(commands, subscriptions, latchkey.WithLogger(nil), latchkey.WithLogger(slog.Default()), nil)
		require.NoError(t, err)
		require.NoError(t, c.Check(t.Context()))
		c.Close()
		c.Close()
		require.ErrorIs(t, c.Check(t.Context()), latchkey.ErrClosed)
		require.NoError(t, commands.Do(t.Context(), commands.B().Ping().Build()).Error())
		require.Eventually(t, func() bool {
			channels, err := commands.Do(t.Context(), commands.B().PubsubChannels().Build()).AsStrSlice()
			return err == nil && len(channels) == 0
		}, 10*time.Second, time.Millisecond, "no subscription is left")
	})
}
