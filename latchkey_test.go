package latchkey_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// malformed are URLs with a password that ends with ret, and errors about them.
var malformed = map[string]string{
	"redis://user:secret@host:port/0":            `invalid port ":port" after host`,
	"redis://user:secret@host/zero":              `invalid database number: "zero"`,
	"foo://user:secret@host":                     "the address must be a URL as redis://host:port: redis: invalid URL scheme: foo",
	"redis://user:sec ret@host/0":                "special characters of a user or a password are escaped, as %2F for /",
	"redis://user:12/ret@host:6379":              "special characters",
	"redis://user:sec/ret@host:6379":             "special characters",
	"redis://user:sec?ret@host:6379":             "special characters",
	"redis://user:sec#ret@host:6379":             "special characters",
	"redis://user:sec%ret@host:6379":             "special characters",
	"redis://user:s@ec/ret@host:6379":            "special characters",
	"user:secret@host:6379":                      "the address must be a URL as redis://host:port: ",
	"redis://user:secret@host:65536":             "port 65536 is more than 65535",
	"redis://user:secret@host/-1":                "the database number is -1",
	"redis://user:secret@host?dial_timeout=-1s":  "a timeout is negative",
	"redis://user:secret@host?write_timeout=-1s": "a timeout is negative",
	"redis://user:secret@host?addr=other":        `addr="other" is not host:port`,
	"redis://user:secret@host/a%0Ab/c":           "redis: invalid URL path: /a\ufffdb/c",
	"redis://user:secret@::1:6380":               `host "::1:6380" has a colon: an IPv6 address stands in brackets`,
	"redis://::":                                 `host "::" has a colon`,
	"unix://user:secret@":                        "the path of the socket is missing",
}

func TestOpenFails(t *testing.T) {
	for address, why := range malformed {
		_, err := latchkey.Open(address)
		locktest.ErrorSays(t, err, latchkey.ErrInvalid)
		require.ErrorContains(t, err, why)
		require.NotContains(t, err.Error(), "ret", "the password is nobody's business")
		require.NotContains(t, err.Error(), "12", "nor is a part of it")
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
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		c, err := latchkey.New(p.Option())
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
			c, err := latchkey.New(p.Option(), opts...)
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
			c, err := latchkey.New(s.Option(), latchkey.WithKeyPrefix(prefix))
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
