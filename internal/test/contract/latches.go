package contract

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// latches is the contract of the latches.
type latches struct{ Servers }

// Latches runs the contract of the latches.
func Latches(t *testing.T, s Servers) {
	all := latches{s}
	t.Run("open", all.open)
	t.Run("not set", all.notSet)
	t.Run("stated", all.stated)
	t.Run("counted once", all.countedOnce)
	t.Run("expires", all.expires)
	t.Run("deleted", all.deleted)
	t.Run("scripts flushed", all.scriptsFlushed)
	t.Run("connections killed", all.connectionsKilled)
	t.Run("shutdown", all.shutdown)
	s.Clean(t, true)
}

func (s latches) new(t testing.TB, c *latchkey.Client, name string, opts ...countdown.Option) *countdown.Latch {
	t.Helper()
	l, err := countdown.New(c, "latch:"+name, opts...)
	require.NoError(t, err)
	return l
}

func arm(t testing.TB, l *countdown.Latch, n int) {
	t.Helper()
	done, err := l.TrySetCount(t.Context(), n)
	require.NoError(t, err)
	require.True(t, done)
}

func down(t testing.TB, l *countdown.Latch, want int) {
	t.Helper()
	tally, err := l.CountDown(t.Context())
	require.NoError(t, err)
	require.Equal(t, countdown.Tally{Remaining: want, Counted: true}, tally)
}

// await begins to wait, and returns when the client has looked and listens on the channel.
func (s latches) await(t testing.TB, l *countdown.Latch, listeners int) *redistest.Attempt[struct{}] {
	t.Helper()
	w := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Await(ctx) })
	s.listen(t, "redisson_countdownlatch__channel__{"+l.Name()+"}", listeners)
	return w
}

// listen returns when at least so many connections are subscribed to a channel.
func (s Servers) listen(t testing.TB, channel string, listeners int) {
	t.Helper()
	require.Eventually(t, func() bool {
		total := int64(0)
		for _, kind := range []string{"NUMSUB", "SHARDNUMSUB"} {
			for _, c := range s.Plain() {
				n, err := c.Do(context.Background(), c.B().Arbitrary("PUBSUB", kind, channel).Build()).AsIntMap()
				if err == nil { // the other kind is refused by those that do not have it
					total += n[channel]
				}
			}
		}
		return total >= int64(listeners)
	}, long, 5*time.Millisecond, "%d listen on %s", listeners, channel)
}

// In all slots: waiters go on at zero, in every client, and the latch stays open until it is shut again.
func (s latches) open(t *testing.T) {
	a, b := s.Servers.open(t), s.Servers.open(t)
	for n := range 20 {
		name := fmt.Sprint("open", n)
		mine, other := s.new(t, a, name, countdown.WithTTL(time.Minute)), s.new(t, b, name)
		for range 2 {
			done, err := mine.Rearm(t.Context(), 2)
			require.NoError(t, err)
			require.True(t, done)
			one, two := s.await(t, mine, 1), s.await(t, other, 2)
			down(t, other, 1)
			select {
			case <-one.Ended:
				require.FailNow(t, "early")
			case <-two.Ended:
				require.FailNow(t, "early")
			default:
			}
			began := time.Now()
			down(t, mine, 0)
			one.Granted(t)
			two.Granted(t)
			require.Less(t, time.Since(began), prompt)
			require.NoError(t, other.Await(t.Context()))
			done, err = other.TrySetCount(t.Context(), 1)
			require.NoError(t, err)
			require.False(t, done)
		}
	}
}

// No waiter passes a latch that Redis knows nothing of, unless an option says so.
func (s latches) notSet(t *testing.T) {
	c := s.Servers.open(t)
	require.ErrorIs(t, s.new(t, c, "misspelt").Await(t.Context()), countdown.ErrNotSet)
	_, err := s.new(t, c, "misspelt").CountDown(t.Context())
	require.ErrorIs(t, err, countdown.ErrNotSet)
	require.NoError(t, s.new(t, c, "misspelt", countdown.WithOpenWhenUnset()).Await(t.Context()))
	patient, l := s.new(t, c, "later", countdown.WithWaitForSet()), s.new(t, s.Servers.open(t), "later")
	w := s.await(t, patient, 1)
	arm(t, l, 1)
	down(t, l, 0)
	w.Granted(t)
}

// A latch whose count is stated is set by the first client that comes. One that counts is told what remains,
// and whether it counted.
func (s latches) stated(t *testing.T) {
	of := func() *countdown.Latch {
		return s.new(t, s.Servers.open(t), "stated", countdown.WithCount(3), countdown.WithTTL(time.Minute))
	}
	mine, other := of(), of()
	as := func(l *countdown.Latch, want countdown.Tally) {
		t.Helper()
		tally, err := l.CountDownAs(t.Context(), "p")
		require.NoError(t, err)
		require.Equal(t, want, tally)
	}
	w := s.await(t, mine, 1)
	as(other, countdown.Tally{Remaining: 2, Counted: true})
	as(mine, countdown.Tally{Remaining: 2})
	down(t, mine, 1)
	down(t, other, 0)
	w.Granted(t)
	as(other, countdown.Tally{})
	tally, err := mine.CountDown(t.Context())
	require.NoError(t, err, "it is open")
	require.Equal(t, countdown.Tally{}, tally)
	_, err = mine.Delete(t.Context())
	require.NoError(t, err)
	down(t, other, 2) // it is made again
	_, err = mine.Delete(t.Context())
	require.NoError(t, err)
}

// However many count at the same time, whichever connections are killed, each counts once.
func (s latches) countedOnce(t *testing.T) {
	const workers, each = 12, 25
	clients := []*latchkey.Client{s.Servers.open(t), s.Servers.open(t), s.Servers.open(t)}
	first := s.new(t, clients[0], "once", countdown.WithTTL(time.Minute))
	arm(t, first, workers*(each+1))
	var wg sync.WaitGroup
	for w := range workers {
		l := s.new(t, clients[w%3], "once")
		wg.Go(func() {
			for range each {
				if _, err := l.CountDown(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := l.CountDownAs(t.Context(), fmt.Sprint("worker", w)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	waits := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, first.Await(ctx) })
	for _, kind := range []string{"pubsub", "normal", "pubsub", "normal"} {
		<-time.After(20 * time.Millisecond)
		s.kill(t, kind)
	}
	finish(t, &wg)
	waits.Granted(t)
	require.Eventually(t, func() bool { // a question is asked once, and the connection may have been killed
		n, err := first.Count(t.Context())
		return err == nil && n == 0
	}, long, 5*time.Millisecond)
}

func (s latches) expires(t *testing.T) {
	const ttl = 500 * time.Millisecond
	mine, other := s.new(t, s.Servers.open(t), "expires", countdown.WithTTL(ttl)), s.new(t, s.Servers.open(t), "expires")
	arm(t, mine, 1)
	set := time.Now()
	w := redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, other.Await(ctx) })
	require.ErrorIs(t, w.Outcome(t), countdown.ErrExpired)
	require.Less(t, w.At.Sub(set), prompt, "long before it would have asked by itself")
}

func (s latches) deleted(t *testing.T) {
	mine, other := s.new(t, s.Servers.open(t), "deleted"), s.new(t, s.Servers.open(t), "deleted")
	arm(t, mine, 1)
	w := s.await(t, other, 1)
	existed, err := mine.Delete(t.Context())
	require.NoError(t, err)
	require.True(t, existed)
	require.ErrorIs(t, w.Outcome(t), countdown.ErrDeleted)
	require.ErrorIs(t, mine.Await(t.Context()), countdown.ErrNotSet)
}

func (s latches) scriptsFlushed(t *testing.T) {
	l := s.new(t, s.Servers.open(t), "scripts", countdown.WithTTL(time.Minute))
	s.do(t, "SCRIPT", "FLUSH")
	arm(t, l, 1)
	w := s.await(t, l, 1)
	s.do(t, "SCRIPT", "FLUSH")
	down(t, l, 0)
	w.Granted(t)
}

// Whichever connection is killed, the waiter goes on, and long before it would have asked by itself.
func (s latches) connectionsKilled(t *testing.T) {
	for _, kind := range []string{"pubsub", "normal"} {
		t.Run(kind, func(t *testing.T) {
			mine := s.new(t, s.Servers.open(t), "killed-"+kind, countdown.WithTTL(time.Minute))
			other := s.new(t, s.Servers.open(t), "killed-"+kind)
			arm(t, mine, 1)
			w := s.await(t, other, 1)
			require.GreaterOrEqual(t, s.kill(t, kind), 2, "those of both clients")
			counted := time.Now()
			down(t, mine, 0)
			w.Granted(t)
			require.Less(t, w.At.Sub(counted), prompt)
		})
	}
}

func (s latches) shutdown(t *testing.T) {
	c := s.Servers.open(t)
	l := s.new(t, c, "shutdown", countdown.WithTTL(time.Minute))
	arm(t, l, 1)
	w := s.await(t, l, 1)
	require.NoError(t, c.Shutdown(t.Context()))
	require.ErrorIs(t, w.Outcome(t), latchkey.ErrClosed)
	other := s.new(t, s.Servers.open(t), "shutdown")
	down(t, other, 0)
	require.NoError(t, other.Await(t.Context()))
}
