package countdown_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Those who wait, in all processes and by any number of goroutines, go on at zero and not before.
func TestAwait(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		mine, other := newLatch(t, open(t, s.Option())), newLatch(t, open(t, s.Option()))
		set(t, mine, 3)
		n, err := other.Count(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
		var all []*wait
		for range 20 {
			all = append(all, await(t, mine), await(t, other))
		}
		waits(t, s.Client(t), 2)
		count(t, mine, 2)
		rest, err := other.CountDownAs(t.Context(), "worker")
		require.NoError(t, err)
		require.EqualValues(t, 1, rest)
		for range 3 {
			rest, err = mine.CountDownAs(t.Context(), "worker") // after a restart
			require.NoError(t, err)
			require.EqualValues(t, 1, rest)
		}
		for _, w := range all {
			select {
			case <-w.ended:
				require.FailNow(t, "released early", "%v", w.err)
			default:
			}
		}
		state, err := mine.Inspect(t.Context())
		require.NoError(t, err)
		generation := state.Generation
		require.Positive(t, generation)
		require.Equal(t, countdown.State{Status: countdown.Shut, Generation: generation, Count: 1, Expires: -1, Participants: []string{"worker"}}, state)
		count(t, other, 0)
		for _, w := range all {
			require.NoError(t, w.result(t))
		}
		redistest.OnlyExpiring(t, s.Client(t))

		// It stays open: for who comes late, or again.
		require.NoError(t, other.Await(t.Context()))
		done, err := mine.TrySetCount(t.Context(), 5)
		require.NoError(t, err)
		require.False(t, done, "late")
		require.NoError(t, mine.Await(t.Context()))
		rest, err = mine.CountDownAs(t.Context(), "worker")
		require.NoError(t, err)
		require.Zero(t, rest)
		_, err = mine.CountDown(t.Context())
		require.ErrorIs(t, err, countdown.ErrOpen)
		_, err = mine.CountDownAs(t.Context(), "stranger")
		require.ErrorIs(t, err, countdown.ErrOpen)

		// It is shut again on purpose only, and not while it is shut.
		done, err = mine.Rearm(t.Context(), 1)
		require.NoError(t, err)
		require.True(t, done)
		done, err = other.Rearm(t.Context(), 7)
		require.NoError(t, err)
		require.False(t, done)
		again := await(t, other)
		state, err = mine.Inspect(t.Context())
		require.NoError(t, err)
		require.Greater(t, state.Generation, generation)
		require.Empty(t, state.Participants)
		rest, err = mine.CountDownAs(t.Context(), "worker")
		require.NoError(t, err)
		require.Zero(t, rest)
		require.NoError(t, again.result(t))
	})
}

// A latch that was never set lets everybody pass, or makes them wait for that.
func TestNeverSet(t *testing.T) {
	s := redistest.New(t)
	c := open(t, s.Option())
	l, patient := newLatch(t, c), newLatch(t, open(t, s.Option()), countdown.WithWaitForSet())
	require.NoError(t, l.Await(t.Context()))
	_, err := l.CountDown(t.Context())
	require.ErrorIs(t, err, countdown.ErrNotSet)
	_, err = l.CountDownAs(t.Context(), "p")
	require.ErrorIs(t, err, countdown.ErrNotSet)
	n, err := l.Count(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	w := await(t, patient)
	waits(t, s.Client(t), 1)
	set(t, l, 1)
	count(t, l, 0)
	require.NoError(t, w.result(t))
	existed, err := l.Delete(t.Context())
	require.NoError(t, err)
	require.True(t, existed)
	existed, err = l.Delete(t.Context())
	require.NoError(t, err)
	require.False(t, existed)
	require.NoError(t, l.Await(t.Context()), "as never set")
	_, err = l.CountDown(t.Context())
	require.ErrorIs(t, err, countdown.ErrNotSet)
	state, err := l.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, countdown.NotSet, state.Status)
	w = await(t, patient)
	set(t, l, 1)
	waits(t, s.Client(t), 1)
	count(t, l, 0)
	require.NoError(t, w.result(t))
}

// A latch with a time to live does not keep its waiters for ever, and they know that it was not open.
func TestExpires(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const ttl = 500 * time.Millisecond
		l, other := newLatch(t, open(t, s.Option()), countdown.WithTTL(ttl)), newLatch(t, open(t, s.Option()))
		began := time.Now()
		set(t, l, 1)
		answered := time.Now()
		one, two := await(t, l), await(t, other)
		require.ErrorIs(t, one.result(t), countdown.ErrExpired)
		require.ErrorIs(t, two.result(t), countdown.ErrExpired)
		require.Greater(t, time.Since(began), ttl)
		require.Less(t, time.Since(answered), ttl+100*time.Millisecond)
		require.ErrorIs(t, other.Await(t.Context()), countdown.ErrExpired, "it is known for a while")
		_, err := other.CountDown(t.Context())
		require.ErrorIs(t, err, countdown.ErrExpired)
		state, err := other.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, countdown.Expired, state.Status)
		redistest.OnlyExpiring(t, s.Client(t))

		set(t, l, 1) // and can be set again
		count(t, other, 0)
		require.NoError(t, other.Await(t.Context()))
		require.Eventually(t, func() bool { // an open one is forgotten after as long again
			state, err := l.Inspect(t.Context())
			return err == nil && state.Status == countdown.NotSet
		}, long, time.Millisecond)
		set(t, l, 1)
		redistest.OnlyExpiring(t, s.Client(t))
	})
}

// Whoever waits for a latch that is deleted, or that Redis has lost, is told so.
func TestDeletedAndLost(t *testing.T) {
	s := redistest.NewProcess(t)
	l, other := newLatch(t, open(t, s.Option())), newLatch(t, open(t, s.Option()))
	set(t, l, 1)
	w := await(t, other)
	waits(t, s.Client(t), 1)
	_, err := l.Delete(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, w.result(t), countdown.ErrDeleted)
	set(t, l, 1)
	w = await(t, other)
	waits(t, s.Client(t), 1)
	s.Restart(t)
	require.ErrorIs(t, w.result(t), latchkey.ErrLost)
	require.Eventually(t, func() bool { return l.Await(t.Context()) == nil }, long, time.Millisecond)
}

// What Java processes do to a latch is understood, and they understand what we do.
func TestRedisson(t *testing.T) {
	s := redistest.New(t)
	l := newLatch(t, open(t, s.Option()))
	plain := s.Client(t)
	do := func(args ...string) {
		t.Helper()
		require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary(args...).Build()).Error())
	}
	set(t, l, 2)
	n, err := plain.Do(t.Context(), plain.B().Get().Key("a").Build()).AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, 2, n, "its getCount")
	w := await(t, l)
	waits(t, plain, 1)
	do("DECR", "a") // its countDown
	do("DECR", "a")
	do("DEL", "a")
	began := time.Now()
	do("PUBLISH", "redisson_countdownlatch__channel__{a}", "0")
	require.NoError(t, w.result(t))
	require.Less(t, time.Since(began), time.Second, "before it would have asked by itself")
	done, err := l.TrySetCount(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, done, "it was open")
	do("SET", "a", "1") // its trySetCount
	do("PUBLISH", "redisson_countdownlatch__channel__{a}", "1")
	w = await(t, l)
	waits(t, plain, 1)
	count(t, l, 0)
	require.NoError(t, w.result(t))
	exists, err := plain.Do(t.Context(), plain.B().Exists().Key("a").Build()).AsInt64()
	require.NoError(t, err)
	require.Zero(t, exists, "its getCount is 0")
}

// Contexts that end, and clients that are closed, end waits at once and leave nothing.
func TestCancelled(t *testing.T) {
	s := redistest.New(t)
	c := open(t, s.Option())
	l := newLatch(t, c, countdown.WithWaitForSet())
	one := await(t, l)
	waits(t, s.Client(t), 1)
	set(t, newLatch(t, open(t, s.Option())), 1)
	two := await(t, l)
	for _, w := range []*wait{one, two} {
		w.cancel()
		require.ErrorIs(t, w.result(t), context.Canceled)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.Await(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, l.Await(ctx), context.DeadlineExceeded)
	_, err := l.CountDown(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	w := await(t, l)
	require.NoError(t, c.Shutdown(t.Context()))
	require.ErrorIs(t, w.result(t), latchkey.ErrClosed)
	require.ErrorIs(t, l.Await(t.Context()), latchkey.ErrClosed)
	_, err = l.CountDown(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
	_, err = l.TrySetCount(t.Context(), 1)
	require.ErrorIs(t, err, latchkey.ErrClosed)
	_, err = l.Delete(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
	_, err = l.Inspect(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
	waits(t, s.Client(t), 0)
}

// A latch has the methods that are documented, and none of what it is made of.
func TestMethods(t *testing.T) {
	redistest.Methods(t, new(countdown.Latch), "Await", "Count", "CountDown", "CountDownAs", "CountDownN", "Delete", "Inspect", "Name",
		"Rearm", "TrySetCount")
}

func TestBadInput(t *testing.T) {
	s := redistest.New(t)
	c := open(t, s.Option(), latchkey.WithMaxWaiters(1))
	for _, name := range []string{"", "a{b", strings.Repeat("n", 1025), "{a}"} {
		_, err := countdown.New(c, name)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
	}
	_, err := countdown.New(nil, "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	for _, d := range []time.Duration{-1, 0, time.Millisecond, 366 * 24 * time.Hour} {
		_, err := countdown.New(c, "a", countdown.WithTTL(d))
		require.ErrorIs(t, err, latchkey.ErrInvalid, d)
	}
	_, err = countdown.New(open(t, s.Option(), latchkey.WithReplicas(1, time.Second)), "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)

	l := newLatch(t, c, nil)
	for _, n := range []int64{0, -1, -1 << 63} {
		_, err = l.TrySetCount(t.Context(), n)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		_, err = l.Rearm(t.Context(), n)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		_, err = l.CountDownN(t.Context(), n)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
	for _, participant := range []string{"", strings.Repeat("p", 1025)} {
		_, err = l.CountDownAs(t.Context(), participant)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
	plain := s.Client(t)
	keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, keys, "nothing is left behind")

	set(t, l, 3)
	_, err = l.CountDownN(t.Context(), 4)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.ErrorContains(t, err, "3 remain")
	rest, err := l.CountDownN(t.Context(), 2)
	require.NoError(t, err)
	require.EqualValues(t, 1, rest)
	first := await(t, l)
	waits(t, plain, 1)
	require.ErrorIs(t, l.Await(t.Context()), latchkey.ErrTooManyWaiters)
	count(t, l, 0)
	require.NoError(t, first.result(t))

	require.NoError(t, plain.Do(t.Context(), plain.B().Set().Key("a").Value("somebody's").Build()).Error())
	for name, f := range map[string]func() error{
		"Await":       func() error { return l.Await(t.Context()) },
		"TrySetCount": func() error { _, err := l.TrySetCount(t.Context(), 1); return err },
		"CountDown":   func() error { _, err := l.CountDown(t.Context()); return err },
		"Count":       func() error { _, err := l.Count(t.Context()); return err },
		"Delete":      func() error { _, err := l.Delete(t.Context()); return err },
	} {
		require.ErrorIs(t, f(), latchkey.ErrWrongType, name)
		require.ErrorContains(t, f(), `"a"`, name)
	}
	value, err := plain.Do(t.Context(), plain.B().Get().Key("a").Build()).ToString()
	require.NoError(t, err)
	require.Equal(t, "somebody's", value)
}

// Waiters who hear of it late learn what became of the generation that they saw, whatever was done since.
func TestGenerationOfAWaiter(t *testing.T) {
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	l := newLatch(t, open(t, s.Option()))
	far := newLatch(t, open(t, p.Option()))
	for _, deleted := range []bool{false, true} {
		_, err := l.Rearm(t.Context(), 1)
		require.NoError(t, err)
		w := await(t, far)
		waits(t, s.Client(t), 1)
		hold(t, p, s.Client(t))
		if deleted {
			_, err = l.Delete(t.Context())
			require.NoError(t, err)
			set(t, l, 1)
		} else {
			count(t, l, 0)
			_, err = l.Rearm(t.Context(), 1)
			require.NoError(t, err)
		}
		p.Judge(nil)
		if deleted {
			require.ErrorIs(t, w.result(t), countdown.ErrDeleted)
		} else {
			require.NoError(t, w.result(t))
			count(t, l, 0)
		}
	}
	count(t, l, 0)
}

// hold cuts the clients behind a proxy off until the proxy is told otherwise.
func hold(t testing.TB, p *redistest.Proxy, plain rueidis.Client) {
	t.Helper()
	p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
	p.KillAll()
	waits(t, plain, 0)
}
