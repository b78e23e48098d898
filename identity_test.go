package latchkey_test

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
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
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

func mustLock(t *testing.T, c *latchkey.Client, name string) *latchkey.Hold {
	t.Helper()
	l, err := rlock.New(c, name)
	require.NoError(t, err)
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	return h
}

// The record of a client is there while it holds something that lasts. It goes after that, with a Close, and
// by itself when the client closed while it held.
func TestRecordOfAClient(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		c, err := rueidisclient.New(s.Option(), latchkey.WithKeyPrefix("shop:"), latchkey.WithLabel("orders"))
		require.NoError(t, err)
		defer c.Close()
		key := "latchkey_client:{shop:" + c.ID() + "}"
		requireRecord := func() {
			t.Helper()
			locktest.Eventually(t, "its record is there", func() bool { return locktest.Records(t, plain)[key] > 0 })
			require.LessOrEqual(t, locktest.Records(t, plain)[key], 30*time.Second)
		}
		requireNone := func() {
			t.Helper()
			locktest.Eventually(t, "its record is gone", func() bool { return len(locktest.Records(t, plain)) == 0 })
		}
		requireNone()
		h := mustLock(t, c, "a")
		requireRecord()
		text, err := plain.Do(t.Context(), plain.B().Get().Key(key).Build()).ToString()
		require.NoError(t, err)
		require.Contains(t, text, `"label":"orders"`)
		require.NoError(t, h.Unlock(t.Context()))
		requireNone()

		h = mustLock(t, c, "a")
		requireRecord()
		require.NoError(t, h.Unlock(t.Context()))
		c.Close()
		require.Empty(t, locktest.Records(t, plain), "Close has removed it")

		c, err = rueidisclient.New(s.Option(), latchkey.WithKeyPrefix("shop:"))
		require.NoError(t, err)
		h = mustLock(t, c, "a")
		key = "latchkey_client:{shop:" + c.ID() + "}"
		requireRecord()
		c.Close()
		require.Len(t, locktest.Records(t, plain), 1, "what it holds is still taken")
		require.NoError(t, h.Unlock(t.Context()))
	})
}

// A client without a record, and one whose user may write none, are known by their ids alone, and to
// themselves.
func TestUntold(t *testing.T) {
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	rule := strings.Fields("ACL SETUSER some on >secret ~a ~latchkey_[^c]* ~redisson_* &* +@all")
	require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(rule...).Build()).Error())
	refused := s.Option()
	refused.Username, refused.Password = "some", "secret"
	for name, test := range map[string]struct {
		option rueidis.ClientOption
		opts   []latchkey.Option
		lines  int
	}{
		"without a record": {s.Option(), []latchkey.Option{latchkey.WithoutRecord()}, 0},
		"refused":          {refused, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var log locktest.Journal
			opts := append(slices.Clone(test.opts), latchkey.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			c, err := rueidisclient.New(test.option, opts...)
			require.NoError(t, err)
			defer c.Close()
			l, err := rlock.New(c, "a")
			require.NoError(t, err)
			h := mustLock(t, c, "a")
			var state latchkey.State
			locktest.Eventually(t, "it knows itself", func() bool {
				state, err = l.Inspect(t.Context())
				return err == nil && !state.Holder.Since.IsZero()
			})
			require.Equal(t, os.Getpid(), state.Holder.PID)
			locktest.Eventually(t, "it is logged", func() bool { return len(log.Lines("may not write who this client is")) == test.lines })
			other, err := rueidisclient.New(refused)
			require.NoError(t, err)
			defer other.Close()
			seen, err := rlock.New(other, "a")
			require.NoError(t, err)
			state, err = seen.Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, latchkey.Identity{Client: c.ID()}, state.Holder.Identity)
			require.Empty(t, locktest.Records(t, plain))
			require.NoError(t, h.Unlock(t.Context()))
		})
	}
}

// What lasts less than a second is told to nobody: a client that locks and unlocks again and again writes its
// record once in a while, however often that is.
func TestRecordCostsLittle(t *testing.T) {
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	var written, sent atomic.Int64
	p.Judge(func(request string) redistest.Verdict {
		sent.Add(1)
		if strings.Contains(request, "latchkey_client:") {
			written.Add(1)
		}
		return redistest.Pass
	})
	c, err := rueidisclient.New(p.Option())
	require.NoError(t, err)
	defer c.Close()
	began := time.Now()
	for time.Since(began) < 3*time.Second {
		require.NoError(t, mustLock(t, c, "a").Unlock(t.Context()))
	}
	require.Greater(t, sent.Load(), int64(100))
	require.LessOrEqual(t, written.Load(), int64(4), "one a second")
}

// The connections of a client bear its id, unless they have another name.
func TestConnectionsAreNamed(t *testing.T) {
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	named := func(name string) int {
		list, err := plain.Do(t.Context(), plain.B().ClientList().Build()).ToString()
		require.NoError(t, err)
		return strings.Count(list, " name="+name+" ")
	}
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Check(t.Context()))
	require.Equal(t, 2, named("latchkey:"+c.ID()))
	option := s.Option()
	option.ClientName = "orders"
	other, err := rueidisclient.New(option)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Check(t.Context()))
	require.Equal(t, 2, named("orders"))
	mute, err := rueidisclient.New(s.Option(), latchkey.WithoutPubSub())
	require.NoError(t, err)
	defer mute.Close()
	require.Zero(t, named("latchkey:"+mute.ID()))
}

// A label that is no text, or too long, is refused.
func TestLabelIsValidated(t *testing.T) {
	for _, label := range []string{strings.Repeat("x", 101), "\xff"} {
		_, err := rueidisclient.New(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}, latchkey.WithLabel(label))
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
}

// Who takes something away, from where and why, is logged by the loser, once, and told to all who inspect it. Nothing is
// told where nothing was taken.
func TestForcedIsTold(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var log locktest.Journal
		loser, err := rueidisclient.New(s.Option(), latchkey.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		defer loser.Close()
		byOther := locktest.ClientOf(t, s, latchkey.WithLabel("the night watch"))
		plain := s.Client(t)
		told := func(name string) bool { return exists(t, plain, "latchkey_forced:{"+name+"}") }
		both, err := rwlock.New(byOther, "halves")
		require.NoError(t, err)
		mine, err := rwlock.New(loser, "halves")
		require.NoError(t, err)
		for name, pair := range map[string][2]*latchkey.Lock{
			"lock": {lockOf(t, loser, "lock"), lockOf(t, byOther, "lock")}, "halves": {mine.Read(), both.Read()},
		} {
			done, err := pair[1].ForceUnlock(t.Context())
			require.NoError(t, err)
			require.False(t, done)
			require.False(t, told(name), "nothing was taken")
			state, err := pair[1].Inspect(t.Context())
			require.NoError(t, err)
			require.Zero(t, state.Forced)

			h, err := pair[0].Lock(t.Context())
			require.NoError(t, err)
			done, err = pair[1].ForceUnlock(latchkey.WithNote(t.Context(), "its host\nburns"))
			require.NoError(t, err)
			require.True(t, done)
			<-h.Context().Done()
			locktest.Eventually(t, "it is logged", func() bool { return len(log.Lines("taken away\" name="+name+" ")) == 1 })
			line := log.Lines("taken away\" name=" + name + " ")[0]
			for _, word := range []string{fmt.Sprint("token=", h.Token()), `by="the night watch"`, fmt.Sprint("pid=", os.Getpid()), "why=\"its host\uFFFDburns\""} {
				require.Contains(t, line, word)
			}
			state, err = pair[0].Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, "the night watch", state.Forced.Label)
			require.Equal(t, "its host\nburns", state.Forced.Note)
			require.InDelta(t, time.Now().Unix(), state.Forced.Since.Unix(), 60)
			require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
		}
	})
}

// So is what finds it out by itself, since it hears no messages. What was taken away before it began is not its loss.
func TestForcedIsFoundOut(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	var log locktest.Journal
	loser, err := rueidisclient.New(s.Option(), latchkey.WithoutPubSub(), latchkey.WithLease(6*time.Second), // its renewal finds it
		latchkey.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	defer loser.Close()
	mine, err := spinlock.New(loser, "a")
	require.NoError(t, err)
	byOther := lockOf(t, locktest.ClientOf(t, s, latchkey.WithLabel("the night watch")), "a")
	h, err := mine.Lock(t.Context())
	require.NoError(t, err)
	done, err := byOther.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, done)
	<-h.Context().Done()
	locktest.Eventually(t, "it is logged", func() bool { return len(log.Lines("latchkey: taken away")) == 1 })
	require.Contains(t, log.Lines("latchkey: taken away")[0], `by="the night watch"`)

	h, err = mine.Lock(t.Context())
	require.NoError(t, err)
	plain := s.Client(t)
	require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
	<-h.Context().Done()
	locktest.Eventually(t, "it is logged", func() bool { return len(log.Lines("latchkey: lost")) == 2 })
	require.NoError(t, loser.Shutdown(t.Context())) // and with it all that logs
	require.Len(t, log.Lines("latchkey: taken away"), 1)
}

// A semaphore that is deleted is likewise. A client WithoutRecord does not tell who deleted it.
func TestDeletedIsTold(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var log locktest.Journal
		loser, err := rueidisclient.New(s.Option(), latchkey.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		defer loser.Close()
		take := func() (*semaphore.Semaphore, *semaphore.Permits) {
			mine, err := semaphore.New(loser, "permits", semaphore.WithCapacity(1))
			require.NoError(t, err)
			p, err := mine.Acquire(t.Context(), 1)
			require.NoError(t, err)
			return mine, p
		}
		for _, test := range []struct {
			option latchkey.Option
			lines  int
		}{{latchkey.WithoutRecord(), 0}, {latchkey.WithLabel("the night watch"), 1}} {
			_, p := take()
			other, err := semaphore.New(locktest.ClientOf(t, s, test.option), "permits")
			require.NoError(t, err)
			done, err := other.Delete(t.Context())
			require.NoError(t, err)
			require.True(t, done)
			<-p.Context().Done()
			locktest.Eventually(t, "it is logged", func() bool { return len(log.Lines("latchkey: taken away")) == test.lines })
		}
	})
}

func exists(t *testing.T, plain rueidis.Client, key string) bool {
	t.Helper()
	n, err := plain.Do(t.Context(), plain.B().Exists().Key(key).Build()).AsInt64()
	require.NoError(t, err)
	return n > 0
}

func lockOf(t *testing.T, c *latchkey.Client, name string) *latchkey.Lock {
	t.Helper()
	l, err := rlock.New(c, name)
	require.NoError(t, err)
	return l
}
