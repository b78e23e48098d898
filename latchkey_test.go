package latchkey_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

func TestOpenFails(t *testing.T) {
	for _, malformed := range []string{"redis://user:secret@host:port/0", "redis://user:sec ret@host/0", "foo://user:secret@host"} {
		_, err := latchkey.Open(malformed)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.NotContains(t, err.Error(), "ret", "the password is nobody's business")
	}
	_, err := latchkey.Open("nonsense")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = latchkey.Open("redis://127.0.0.1:1")
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	_, err = latchkey.New(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}, ReplicaOnly: true})
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = latchkey.Wrap(nil, nil)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
}

func TestWrapOwnsNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		commands, subscriptions := s.Client(t), s.Client(t)
		c, err := latchkey.Wrap(commands, subscriptions, latchkey.WithLogger(nil), latchkey.WithLogger(slog.Default()), nil)
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

func TestCheckSaysWhyNot(t *testing.T) {
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	c, err := latchkey.New(p.Option())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Check(t.Context()))
	p.Silence(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Check(ctx), latchkey.ErrUnavailable)
}

func TestPrefixKeepsApart(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var locks []*rlock.Lock
		for _, prefix := range []string{"a:", "b:", ""} {
			c, err := latchkey.Open(s.URL(), latchkey.WithKeyPrefix(prefix))
			require.NoError(t, err)
			t.Cleanup(c.Close)
			l, err := rlock.New(c, "name")
			require.NoError(t, err)
			locks = append(locks, l)
		}
		for _, l := range locks {
			h, err := l.TryLock(t.Context())
			require.NoError(t, err)
			defer func() { require.NoError(t, h.Unlock(context.Background())) }()
		}
		plain := s.Client(t)
		n, err := plain.Do(t.Context(), plain.B().Exists().Key("a:name", "b:name", "name").Build()).AsInt64()
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
	})
}
