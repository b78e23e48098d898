package latchkey_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

func TestMust(t *testing.T) {
	c := locktest.ClientOf(t, redistest.NewEmbedded(t))
	require.Equal(t, "orders", latchkey.Must(rlock.New(c, "orders")).Name())
	defer func() {
		err, is := recover().(error)
		require.True(t, is)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}()
	latchkey.Must(rlock.New(c, ""))
	t.Fatal("it does not panic")
}

// Close says what is still held, once. A client is an io.Closer.
func TestCloseSaysWhatIsHeld(t *testing.T) {
	s := redistest.NewEmbedded(t)
	var c io.Closer = locktest.ClientOf(t, s)
	require.NoError(t, c.Close(), "nothing is held")
	held := locktest.ClientOf(t, s)
	_, err := latchkey.Must(rlock.New(held, "orders")).Lock(t.Context())
	require.NoError(t, err)
	err = held.Close()
	require.EqualError(t, err, `latchkey: locks are still held: "orders": client closed`)
	require.ErrorIs(t, err, latchkey.ErrClosed)
	require.NotErrorIs(t, err, context.Canceled)
	require.NoError(t, held.Close())
}

func TestOpenFails(t *testing.T) {
	_, err := latchkey.Open("redis://user:sec/ret@host:6379")
	locktest.ErrorSays(t, err, latchkey.ErrInvalid)
	require.NotContains(t, err.Error(), "ret")
	_, err = latchkey.Open("redis://127.0.0.1:1")
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
}

func TestCheckSaysWhyNot(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		c, err := rueidisclient.New(p.Option())
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.Check(t.Context()))
		p.Silence(true)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, c.Check(ctx), latchkey.ErrUnavailable)
	})
}

// A connection that has just ended is not a server that is away: the check is sent again, once.
func TestCheckAfterAConnectionEnded(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		for _, opts := range [][]latchkey.Option{nil, {latchkey.WithoutPubSub()}} {
			p := redistest.NewProxy(t, s)
			c, err := rueidisclient.New(p.Option(), opts...)
			require.NoError(t, err)
			require.NoError(t, c.Check(t.Context()))
			var lost atomic.Int64
			lose := func(n int64) {
				lost.Store(0)
				p.Judge(func(request string) redistest.Verdict {
					if (redistest.IsScript(request) || strings.Contains(request, "PERSIST")) && lost.Add(1) <= n {
						return redistest.LoseReply
					}
					return redistest.Pass
				})
			}
			lose(1)
			require.NoError(t, c.Check(t.Context()))
			require.Positive(t, lost.Load())
			lose(100)
			require.ErrorIs(t, c.Check(t.Context()), latchkey.ErrUnavailable)
			c.Close()
		}
	})
}

func TestPrefixKeepsApart(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var locks []*rlock.Lock
		for _, prefix := range []string{"a:", "b:", ""} {
			c, err := rueidisclient.New(s.Option(), latchkey.WithKeyPrefix(prefix))
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
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
