package rlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/spinlock"
)

func TestLingerOptions(t *testing.T) {
	redistest.Together(t)
	c := open(t, redistest.New(t))
	for _, d := range []time.Duration{-1, 0, time.Millisecond - 1, time.Minute + 1} {
		_, err := rlock.New(c, "a", rlock.WithLinger(d))
		require.ErrorIs(t, err, latchkey.ErrInvalid, d)
	}
	for _, d := range []time.Duration{time.Millisecond, time.Minute} {
		_, err := rlock.New(c, "a", rlock.WithLinger(d))
		require.NoError(t, err)
	}
	_, err := rlock.New(c, "a", rlock.WithLinger(time.Second), rlock.WithoutLocalHandOff())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
}

// A hold that ends at a time of its own does without.
func TestLingerOfTimedHolds(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, plain := open(t, s), s.Client(t)
		for name, o := range map[string]rlock.Option{
			"longest": latchkey.WithMaxHold(time.Minute),
			"fixed":   latchkey.WithFixedLease(time.Minute),
		} {
			l := lingering(t, c, name, 0, o)
			pair(t, l)
			require.False(t, exists(t, plain, name), name)
			before := lingering(t, c, name, 0) // nor does it take over what lingers, but for a command
			pair(t, before)
			pair(t, l)
			require.False(t, exists(t, plain, name), name)
		}
		l := lingering(t, c, "shortest", 0, latchkey.WithMinHold(100*time.Millisecond))
		pair(t, l)
		require.Eventually(t, func() bool { return !exists(t, plain, "shortest") }, 10*time.Second, time.Millisecond)
	})
}

// Tokens are reserved again when they are used up, and grow all the while.
func TestLingerUsesUpItsTokens(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", 0)
		last := pair(t, l)
		before := s.Scripts(t)
		const uses = 20_000
		for range uses {
			token := pair(t, l)
			require.Greater(t, token, last)
			last = token
		}
		sent := s.Scripts(t) - before
		require.Positive(t, sent)
		require.Less(t, sent, int64(uses/100))
		other, err := fairlock.New(open(t, s), "a")
		require.NoError(t, err)
		require.Greater(t, pair(t, other), last)
	})
}

// A pair with what lingers allocates its hold, and nothing else.
func TestLingerAllocates(t *testing.T) {
	l := lingering(t, open(t, redistest.New(t)), "a", 0)
	pair(t, l)
	allocations := testing.AllocsPerRun(1000, func() {
		if err := lockUnlock(t.Context(), l); err != nil {
			t.Error(err)
		}
	})
	require.LessOrEqual(t, allocations, 1.0)
}

// What matters to a hold is its own: its context ends with it, and re-enters nothing after that.
func TestLingerAndContexts(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", 0)
		first, err := l.Lock(t.Context())
		require.NoError(t, err)
		again, err := l.Lock(first.Context())
		require.NoError(t, err)
		require.Equal(t, first.Token(), again.Token())
		require.NoError(t, first.Unlock(t.Context()))
		state, err := l.Inspect(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, latchkey.ModeLinger, state.Holder.Mode, "one of its holds is left")
		require.NoError(t, again.Unlock(t.Context()))
		require.ErrorIs(t, context.Cause(first.Context()), latchkey.ErrReleased)
		require.ErrorIs(t, again.Err(), latchkey.ErrReleased)
		require.ErrorIs(t, again.Unlock(t.Context()), latchkey.ErrNotHeld)

		second, err := l.Lock(t.Context())
		require.NoError(t, err)
		require.Greater(t, second.Token(), first.Token())
		_, err = l.TryLock(context.WithoutCancel(first.Context()))
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "what the context had is over")
		require.NoError(t, second.Err())
		require.NoError(t, second.Unlock(t.Context()))
	})
}

// What lingers is had by any lock of the name in the process. One that does not linger itself releases it.
func TestLingerInsideTheProcess(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, plain := open(t, s), s.Client(t)
		l := lingering(t, c, "a", 0)
		fair, err := fairlock.New(c, "a")
		require.NoError(t, err)
		spin, err := spinlock.New(c, "a")
		require.NoError(t, err)
		simple, err := rlock.New(c, "a")
		require.NoError(t, err)
		b, err := rlock.New(c, "b")
		require.NoError(t, err)
		both, err := multilock.New(l, b)
		require.NoError(t, err)
		last := int64(0)
		for range 3 {
			for _, lock := range []*latchkey.Lock{fair, spin, simple} {
				for _, take := range []func(context.Context) (*latchkey.Hold, error){lock.Lock, lock.TryLock} {
					token := pair(t, l)
					require.Greater(t, token, last)
					h, err := take(t.Context())
					require.NoError(t, err)
					require.Greater(t, h.Token(), token)
					last = h.Token()
					require.NoError(t, h.Unlock(t.Context()))
					require.False(t, exists(t, plain, "a"))
				}
			}
			for _, take := range []func(context.Context) (*multilock.Hold, error){both.Lock, both.TryLock} {
				pair(t, l)
				h, err := take(t.Context())
				require.NoError(t, err)
				require.NoError(t, h.Unlock(t.Context()))
			}
		}
	})
}

// Inspect says of a lock of its own client whether it is held. Of another's it knows that it may linger.
func TestInspectALingeringLock(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", 0)
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		says := func(l *latchkey.Lock, lingers, mayLinger bool) {
			t.Helper()
			state, err := l.Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, []bool{lingers, mayLinger}, []bool{state.Holder.Mode == latchkey.ModeLinger, state.Holder.Mode == latchkey.ModeMayLinger})
			require.Zero(t, state.Readers)
		}
		says(l, false, false)
		h, err := l.Lock(t.Context())
		require.NoError(t, err)
		says(l, false, false)
		says(other, false, true)
		require.NoError(t, h.Unlock(t.Context()))
		says(l, true, false)
		says(other, false, true)
		pair(t, other)
		says(l, false, false)
		h, err = other.Lock(t.Context())
		require.NoError(t, err)
		says(l, false, false)
		require.NoError(t, h.Unlock(t.Context()))
	})
}

// In a cluster each name has an inbox of its own, which stays open while the lock lingers.
// Rule 40.
func TestLingerInACluster(t *testing.T) {
	cluster := redistest.NewCluster(t)
	dial := func() *latchkey.Client {
		c, err := rueidisclient.New(cluster.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.Check(t.Context()))
		return c
	}
	c, others := dial(), dial()
	for n := range 5 {
		name := fmt.Sprint("a", n)
		l := lingering(t, c, name, 0)
		other, err := rlock.New(others, name)
		require.NoError(t, err)
		for range 3 {
			pair(t, l)
			pair(t, l) // it is used again: so it is worth to linger
			state, err := l.Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, latchkey.ModeLinger, state.Holder.Mode)
			began := time.Now()
			pair(t, other)
			require.Less(t, time.Since(began), time.Second)
			pair(t, l)
			pair(t, l)
			h, err := other.TryLock(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Unlock(t.Context()))
		}
	}
}

// Several processes, with all kinds of uses side by side: one holds at a time, and tokens grow.
func TestLingerAtRandom(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		var inside, last, holds atomic.Int64
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for n := range 3 {
			c := open(t, s)
			for range 3 {
				l := lingering(t, c, "a", time.Duration(1+10*n)*time.Millisecond)
				fair, err := fairlock.New(c, "a")
				require.NoError(t, err)
				wg.Go(func() {
					for ctx.Err() == nil {
						take := []func(context.Context) (*latchkey.Hold, error){l.Lock, l.Lock, l.TryLock, fair.Lock, fair.TryLock}[rand.N(5)]
						h, err := take(ctx)
						if err != nil {
							continue
						}
						if inside.Add(1) != 1 || last.Swap(h.Token()) >= h.Token() {
							t.Error("two hold it, or a token does not grow")
						}
						holds.Add(1)
						time.Sleep(rand.N(time.Millisecond))
						inside.Add(-1)
						if err := h.Unlock(context.Background()); err != nil {
							t.Error(err)
						}
						time.Sleep(rand.N(5 * time.Millisecond))
					}
				})
			}
		}
		<-time.After(time.Duration(redistest.Longer(2, 60)) * time.Second)
		require.Eventually(t, func() bool { return holds.Load() > 100 }, 10*time.Second, time.Millisecond)
	})
}
