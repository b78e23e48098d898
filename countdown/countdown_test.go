package countdown_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Those who wait, in all processes and by any number of goroutines, go on at zero and not before.
func TestAwait(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		mine, other := newLatch(t, open(t, s.Option())), newLatch(t, open(t, s.Option()))
		set(t, mine, 3)
		n, err := other.Count(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, n)
		var all []*wait
		for range 20 {
			all = append(all, await(t, mine), await(t, other))
		}
		waits(t, s.Client(t), 2)
		count(t, mine, 2)
		participates(t, other, "worker", countdown.Tally{Remaining: 1, Counted: true})
		for range 3 {
			participates(t, mine, "worker", countdown.Tally{Remaining: 1}) // after a restart
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
		participates(t, mine, "worker", countdown.Tally{})
		participates(t, mine, "stranger", countdown.Tally{})
		for _, n := range []int{1, 7} {
			tally, err := mine.CountDownN(t.Context(), n)
			require.NoError(t, err, "it is open")
			require.Equal(t, countdown.Tally{}, tally)
		}

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
		participates(t, mine, "worker", countdown.Tally{Counted: true})
		require.NoError(t, again.result(t))
	})
}

func participates(t testing.TB, l *countdown.Latch, name string, want countdown.Tally) {
	t.Helper()
	tally, err := l.CountDownAs(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, want, tally)
}

// A latch that was never set lets nobody pass who does not say so, and may be waited for.
func TestNeverSet(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s.Option())
	l, patient := newLatch(t, c), newLatch(t, open(t, s.Option()), countdown.WithWaitForSet())
	passes := newLatch(t, c, countdown.WithOpenWhenUnset())
	require.ErrorIs(t, l.Await(t.Context()), countdown.ErrNotSet)
	require.ErrorContains(t, l.Await(t.Context()), `latchkey: "a": not set`)
	require.NoError(t, passes.Await(t.Context()))
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
	require.ErrorIs(t, l.Await(t.Context()), countdown.ErrNotSet, "as never set")
	require.NoError(t, passes.Await(t.Context()))
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

// A latch whose count is stated is set by whoever comes first, to wait or to count, also after it was
// deleted or lost; and only once.
func TestStated(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		var all []*countdown.Latch
		for range 3 {
			all = append(all, newLatch(t, open(t, s.Option()), countdown.WithCount(3)))
		}
		left(t, plain)
		w := await(t, all[0])
		waits(t, plain, 1)
		count(t, all[1], 2)
		require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
		require.ErrorIs(t, w.result(t), latchkey.ErrLost)
		count(t, all[0], 2) // it is made again, and what was counted is lost
		waiters := []*wait{await(t, all[1]), await(t, all[2])}
		waits(t, plain, 3)
		_, err := all[1].Delete(t.Context())
		require.NoError(t, err)
		for _, w := range waiters {
			require.ErrorIs(t, w.result(t), countdown.ErrDeleted)
		}
		participates(t, all[2], "p", countdown.Tally{Remaining: 2, Counted: true})
		participates(t, all[1], "p", countdown.Tally{Remaining: 2})
		tally, err := all[0].CountDownN(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, countdown.Tally{Counted: true}, tally)
		for _, l := range all { // it is open, and stays so
			require.NoError(t, l.Await(t.Context()))
			count(t, newLatch(t, open(t, s.Option()), countdown.WithCount(7)), 0, false)
		}
		_, err = all[0].Delete(t.Context())
		require.NoError(t, err)
		short := newLatch(t, open(t, s.Option()), countdown.WithCount(1), countdown.WithTTL(time.Second)) // longer than a stall of the machine
		require.ErrorIs(t, short.Await(t.Context()), countdown.ErrExpired)
		_, err = short.CountDown(t.Context())
		require.ErrorIs(t, err, countdown.ErrExpired, "what has expired is set again by TrySetCount, or when it is forgotten")
	})
}

// However often replies are lost, a latch whose count is stated is set once, each count counts once, and
// the answer says so.
func TestStatedWhileRepliesAreLost(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	p := redistest.NewProxy(t, s)
	l := newLatch(t, open(t, p.Option()), countdown.WithCount(3))
	var sent atomic.Int64
	p.Judge(func(request string) redistest.Verdict {
		if redistest.IsScript(request) && sent.Add(1)%2 == 1 {
			return redistest.LoseReply
		}
		return redistest.Pass
	})
	count(t, l, 2)
	participates(t, l, "p", countdown.Tally{Remaining: 1, Counted: true})
	participates(t, l, "p", countdown.Tally{Remaining: 1})
	count(t, l, 0)
	count(t, l, 0, false)
	require.GreaterOrEqual(t, sent.Load(), int64(12))
}

// A latch with a time to live does not keep its waiters for ever, and they know that it was not open.
func TestExpires(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const ttl = time.Second // longer than a stall of the machine
		l, other := newLatch(t, open(t, s.Option()), countdown.WithTTL(ttl)), newLatch(t, open(t, s.Option()))
		began := time.Now()
		set(t, l, 1)
		answered := time.Now()
		one, two := await(t, l), await(t, other)
		require.ErrorIs(t, one.result(t), countdown.ErrExpired)
		require.ErrorIs(t, two.result(t), countdown.ErrExpired)
		require.Greater(t, time.Since(began), ttl)
		s.Within(t, answered, ttl+100*time.Millisecond, "before they would ask by themselves")
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
		}, long, 5*time.Millisecond)
		set(t, l, 1)
		redistest.OnlyExpiring(t, s.Client(t))
	})
}

// Whoever waits for a latch that is deleted, or that Redis has lost, is told so.
func TestDeletedAndLost(t *testing.T) {
	redistest.Together(t)
	for name, end := range map[string]struct {
		latch func(*testing.T, *redistest.Server, *countdown.Latch)
		told  error
	}{
		"deleted": {func(t *testing.T, _ *redistest.Server, l *countdown.Latch) {
			existed, err := l.Delete(t.Context())
			require.NoError(t, err)
			require.True(t, existed)
		}, countdown.ErrDeleted},
		"lost": {func(t *testing.T, s *redistest.Server, _ *countdown.Latch) { s.Restart(t) }, latchkey.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.NewProcess(t)
			l, other := newLatch(t, open(t, s.Option())), newLatch(t, open(t, s.Option()))
			set(t, l, 1)
			w := await(t, other)
			waits(t, s.Client(t), 1) // it has looked before: the server is new
			end.latch(t, s, l)
			require.ErrorIs(t, w.result(t), end.told)
			require.ErrorIs(t, l.Await(t.Context()), countdown.ErrNotSet)
		})
	}
}

// What Java processes do to a latch is understood, and they understand what we do.
func TestRedisson(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
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
		const countDown = `local v = redis.call('decr', KEYS[1])
			if v <= 0 then redis.call('del', KEYS[1]) end
			if v == 0 then redis.call('publish', KEYS[2], '0') end
			return v` // its own: in one step, or a reader finds a 0
		do("EVAL", countDown, "2", "a", "redisson_countdownlatch__channel__{a}")
		began := time.Now()
		do("EVAL", countDown, "2", "a", "redisson_countdownlatch__channel__{a}")
		require.NoError(t, w.result(t))
		s.Within(t, began, time.Second, "before it would have asked by itself")
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
	})
}

// Contexts that end, and clients that are closed, end waits at once and leave nothing.
func TestCancelled(t *testing.T) {
	redistest.Together(t)
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
	redistest.Together(t)
	redistest.Methods(t, new(countdown.Latch), "Await", "Count", "CountDown", "CountDownAs", "CountDownN", "Delete", "Inspect", "Name",
		"Rearm", "TrySetCount")
}

func TestBadInput(t *testing.T) {
	redistest.Together(t)
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
	for _, n := range []int{0, -1, math.MinInt} {
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
	for _, n := range []int{0, -1, math.MinInt} {
		_, err = countdown.New(c, "a", countdown.WithCount(n))
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
	unset := []countdown.Option{countdown.WithCount(1), countdown.WithWaitForSet(), countdown.WithOpenWhenUnset()}
	for i := range unset {
		_, err = countdown.New(c, "a", unset[i], unset[(i+1)%3])
		require.ErrorIs(t, err, latchkey.ErrInvalid, "they exclude each other")
	}
	plain := s.Client(t)
	left(t, plain)

	set(t, l, 3)
	_, err = l.CountDownN(t.Context(), 4)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.ErrorContains(t, err, "the count is 3")
	tally, err := l.CountDownN(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, countdown.Tally{Remaining: 1, Counted: true}, tally)
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
// Rule 18.
func TestGenerationOfAWaiter(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	l := newLatch(t, open(t, s.Option()))
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprint("deleted ", deleted), func(t *testing.T) {
			_, err := l.Rearm(t.Context(), 1)
			require.NoError(t, err)
			p := redistest.NewProxy(t, s)
			w := await(t, newLatch(t, open(t, p.Option())))
			waits(t, s.Client(t), 1) // it has looked before: the client is new
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
			}
			count(t, l, 0)
		})
		waits(t, s.Client(t), 0)
	}
}

// hold cuts the clients behind a proxy off until the proxy is told otherwise.
func hold(t testing.TB, p *redistest.Proxy, plain rueidis.Client) {
	t.Helper()
	p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
	p.KillAll()
	waits(t, plain, 0)
}
