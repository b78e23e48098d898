package latchkey_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

func Example() {
	url, stop := redistest.Embedded() // yours: redis://localhost:6379
	defer stop()
	c, err := latchkey.Open(url, latchkey.WithKeyPrefix("shop:"), latchkey.WithLease(5*time.Second))
	if err != nil {
		log.Panic(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Shutdown(ctx); err != nil { // waits for what is held
			log.Panic(err)
		}
	}()
	fmt.Println("healthy:", c.Check(context.Background()) == nil)
	// Output: healthy: true
}

func ExampleObserver() {
	url, stop := redistest.Embedded()
	defer stop()
	c, err := latchkey.Open(url, latchkey.WithObserver(latchkey.Observer{
		Acquired: func(e latchkey.Event) { fmt.Println("acquired", e.Kind, e.Name) },
		Released: func(e latchkey.Event) { fmt.Println("released", e.Kind, e.Name) },
		Lost:     func(e latchkey.Event) { fmt.Println("lost", e.Kind, e.Name, e.Err) },
	}))
	if err != nil {
		log.Panic(err)
	}
	defer c.Close()
	lock, err := rlock.New(c, "a")
	if err != nil {
		log.Panic(err)
	}
	if err := lock.Do(context.Background(), func(context.Context, *latchkey.Hold) error { return nil }); err != nil {
		log.Panic(err)
	}
	// Output:
	// acquired lock a
	// released lock a
}

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
