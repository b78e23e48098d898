package countdown_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// While Redis does not answer, waiters wait and counts are repeated; afterwards everything is as it was
// counted.
func TestRedisStopped(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		l, other := newLatch(t, open(t, s.Option())), newLatch(t, open(t, s.Option()))
		set(t, l, 3)
		w := await(t, other)
		waits(t, s.Client(t), 1)
		s.Stop(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := l.CountDownAs(ctx, "p")
		s.Within(t, began, time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		require.ErrorIs(t, other.Await(ctx), context.DeadlineExceeded)
		patient := make(chan error, 1)
		go func() { _, err := l.CountDown(t.Context()); patient <- err }()
		<-time.After(1500 * time.Millisecond) // connections are given up, and made again
		s.Continue(t)
		require.NoError(t, <-patient)
		tally, err := l.CountDownAs(t.Context(), "p") // whether it was counted or not
		require.NoError(t, err)
		require.Equal(t, 1, tally.Remaining)
		count(t, other, 0)
		require.NoError(t, w.result(t))
	})
}

// An error says that a context ended, and that Redis is away, when that is so and not otherwise.
func TestReasonOfAnEarlyEnd(t *testing.T) {
	redistest.Together(t)
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		l := newLatch(t, c)
		set(t, l, 1)
		healthy, away, closed := await(t, l), await(t, l), await(t, l)
		waits(t, s.Client(t), 1)
		healthy.cancel()
		err := healthy.result(t)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, latchkey.ErrUnavailable)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		s.Stop(t)
		require.Eventually(t, func() bool { // its commands get no answer, and it is known to be away
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			return errors.Is(l.Await(ctx), latchkey.ErrUnavailable)
		}, long, 5*time.Millisecond)
		away.cancel()
		err = away.result(t)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, latchkey.ErrUnavailable)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "that is rueidis' own")
		c.Close()
		err = closed.result(t)
		require.ErrorIs(t, err, latchkey.ErrClosed)
		require.NotErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

// Without memory a latch cannot be set, and nothing has changed; what is set can be counted down and
// deleted.
func TestMemoryIsFull(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	l := newLatch(t, open(t, s.Option()))
	full := func(maxmemory string) {
		require.NoError(t, plain.Do(t.Context(), plain.B().ConfigSet().ParameterValue().ParameterValue("maxmemory", maxmemory).Build()).Error())
	}
	full("1")
	_, err := l.TrySetCount(t.Context(), 1)
	require.ErrorContains(t, err, "OOM")
	require.ErrorIs(t, l.Await(t.Context()), countdown.ErrNotSet)
	stated := newLatch(t, open(t, s.Option()), countdown.WithCount(1))
	require.ErrorContains(t, stated.Await(t.Context()), "OOM")
	left(t, plain)
	_, err = stated.CountDown(t.Context())
	require.ErrorContains(t, err, "OOM")
	full("0")
	set(t, l, 2)
	w := await(t, l)
	waits(t, plain, 1)
	full("1")
	count(t, l, 1)
	tally, err := l.CountDownAs(t.Context(), "p")
	require.NoError(t, err)
	require.Equal(t, countdown.Tally{Counted: true}, tally)
	require.NoError(t, w.result(t))
	full("0")
	_, err = l.Rearm(t.Context(), 1)
	require.NoError(t, err)
	full("1")
	require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error()) // a Java process opens it
	require.NoError(t, l.Await(t.Context()))
	_, err = l.Rearm(t.Context(), 1)
	require.ErrorContains(t, err, "OOM")
	require.NoError(t, l.Await(t.Context()), "still open")
	existed, err := l.Delete(t.Context())
	require.NoError(t, err)
	require.True(t, existed)
	redistest.OnlyExpiring(t, plain)
}

// A waiter that was cut off while a latch with a short time to live was open, and forgotten, still learns
// that it was.
func TestHearsOfItAfterTheTTL(t *testing.T) {
	redistest.Together(t)
	for name, opened := range map[string]bool{"opened": true, "expired": false} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				p := redistest.NewProxy(t, s)
				const ttl = time.Second // longer than a stall of the machine
				l, far := newLatch(t, open(t, s.Option()), countdown.WithTTL(ttl)), newLatch(t, open(t, p.Option()))
				set(t, l, 1)
				w := await(t, far)
				waits(t, s.Client(t), 1) // it has looked before: the server is new
				hold(t, p, s.Client(t))
				if opened {
					count(t, l, 0)
				}
				require.Eventually(t, func() bool {
					state, err := l.Inspect(t.Context())
					return err == nil && state.Status == countdown.NotSet
				}, long, 5*time.Millisecond)
				p.Judge(nil)
				if opened {
					require.NoError(t, w.result(t))
				} else {
					require.ErrorIs(t, w.result(t), countdown.ErrExpired)
				}
			})
		})
	}
}

// Whoever may not publish changes the latch all the same, and is told what was done; the others find out
// when they ask.
func TestMayNotPublish(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	l := newLatch(t, open(t, s.Option()))
	option := s.Option()
	require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary("ACL", "SETUSER", "p", "on", "nopass", "~*", "resetchannels", "&latchkey_inbox:*", "+@all").Build()).Error())
	option.Username, option.Password = "p", "any"
	mute := newLatch(t, open(t, option))
	set(t, mute, 1)
	w := await(t, l)
	count(t, mute, 0)
	require.NoError(t, w.result(t))
}

// Who has done its work can say so while its client waits for others in Shutdown.
func TestCountDownDuringShutdown(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s.Option())
	l := newLatch(t, c)
	set(t, l, 1)
	lock, err := rlock.New(c, "lock")
	require.NoError(t, err)
	hold, err := lock.Lock(t.Context())
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(t.Context()) }()
	require.Eventually(t, func() bool { _, err := lock.TryLock(t.Context()); return errors.Is(err, latchkey.ErrClosed) }, long, 5*time.Millisecond)
	count(t, l, 0)
	require.NoError(t, hold.Unlock(t.Context()))
	require.NoError(t, <-ended)
	_, err = l.CountDown(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
}

// A message of somebody else on the channel opens nothing: it is a reason to look.
// Rule 25.
func TestForgedNews(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		l := newLatch(t, open(t, s.Option()))
		set(t, l, 2)
		w := await(t, l)
		waits(t, plain, 1)
		for _, text := range []string{"0", "1 r w 9007199254740000 1 -1 ", "1 r b 9007199254740000 1 -1 ", ""} {
			before := s.Scripts(t)
			publish := plain.B().Publish().Channel("redisson_countdownlatch__channel__{a}").Message(text).Build()
			require.NoError(t, plain.Do(t.Context(), publish).Error())
			require.Eventually(t, func() bool { return s.Scripts(t) > before }, long, 5*time.Millisecond, "it looks")
			select {
			case <-w.ended:
				require.Fail(t, "the latch is shut", text)
			default:
			}
		}
		count(t, l, 1)
		count(t, l, 0)
		require.NoError(t, w.result(t))
	})
}
