package latchkey_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/latchkey-go/latchkey/semaphore"
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

// What is held, and locks, print as what they are, in logs too: no pointers, and nothing that reaches a terminal
// unescaped.
func TestHoldsPrint(t *testing.T) {
	c := locktest.ClientOf(t, redistest.NewEmbedded(t))
	l := latchkey.Must(rlock.New(c, "a\x1b"))
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	permits, err := latchkey.Must(semaphore.New(c, "b", semaphore.WithCapacity(3))).Acquire(t.Context(), 2)
	require.NoError(t, err)
	logged := func(v any) string {
		var b strings.Builder
		log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
				return slog.Attr{}
			}
			return a
		}}))
		log.Info("", "held", v)
		return b.String()
	}
	require.Equal(t, `lock "a\x1b"`, fmt.Sprint(l))
	require.Equal(t, fmt.Sprintf(`hold of "a\x1b" with token %d`, h.Token()), fmt.Sprint(h))
	require.Equal(t, fmt.Sprintf(`held.name="a\x1b" held.token=%d`+"\n", h.Token()), logged(h))
	require.Equal(t, fmt.Sprintf(`2 permits of "b" with token %d`, permits.Token()), fmt.Sprint(permits))
	require.Equal(t, fmt.Sprintf("held.name=b held.count=2 held.token=%d\n", permits.Token()), logged(permits))
	require.NoError(t, h.Unlock(t.Context()))
	require.NoError(t, permits.Release(t.Context()))
	require.Equal(t, fmt.Sprintf(`hold of "a\x1b" with token %d, ended: latchkey: "a\x1b": released`, h.Token()), fmt.Sprint(h))
	require.Contains(t, logged(permits), "held.ended=")
	require.Equal(t, `hold of "" with token 0, ended: latchkey: not held`, fmt.Sprint((*latchkey.Hold)(nil)))
	require.Contains(t, logged((*semaphore.Permits)(nil)), "not held")
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
