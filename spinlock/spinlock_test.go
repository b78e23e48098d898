package spinlock_test

import (
	"context"
	"log"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

func TestOptions(t *testing.T) {
	redistest.Together(t)
	c, err := latchkey.Open(redistest.NewEmbedded(t).URL(), latchkey.WithoutPubSub())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	for name, opts := range map[string][]spinlock.Option{
		"first":    {spinlock.WithBackoff(0, time.Second)},
		"shrinks":  {spinlock.WithBackoff(time.Second, time.Millisecond)},
		"last":     {spinlock.WithBackoff(time.Second, time.Hour)},
		"negative": {spinlock.WithBackoff(-1, time.Second)},
		"lease":    {latchkey.WithLease(time.Millisecond)},
		"both":     {latchkey.WithLease(time.Second), latchkey.WithFixedLease(time.Second)},
		"min hold": {latchkey.WithMinHold(-1)},
		"max hold": {latchkey.WithMaxHold(time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := spinlock.New(c, "a", opts...)
			require.ErrorIs(t, err, latchkey.ErrInvalid)
		})
	}
	_, err = spinlock.New(nil, "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = spinlock.New(c, "")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	l, err := spinlock.New(c, "a", nil, latchkey.WithoutReentry())
	require.NoError(t, err)
	require.Equal(t, "a", l.Name())
}

// Where nothing is subscribed to, whoever would have to be told something is refused at once.
func TestOthersRefuseWithoutPubSub(t *testing.T) {
	redistest.Together(t)
	c, err := latchkey.Open(redistest.NewEmbedded(t).URL(), latchkey.WithoutPubSub())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Check(t.Context()))
	for name, build := range map[string]func() error{
		"rlock":     func() error { _, err := rlock.New(c, "a"); return err },
		"fairlock":  func() error { _, err := fairlock.New(c, "a"); return err },
		"rwlock":    func() error { _, err := rwlock.New(c, "a"); return err },
		"semaphore": func() error { _, err := semaphore.New(c, "a", semaphore.WithCapacity(1)); return err },
		"counting":  func() error { _, err := semaphore.NewCounting(c, "a", semaphore.WithCapacity(1)); return err },
		"latch":     func() error { _, err := countdown.New(c, "a"); return err },
		"barrier":   func() error { _, err := barrier.New(c, "a", 2); return err },
	} {
		err := build()
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
		require.EqualError(t, err, `latchkey: "a": invalid argument: the client has no subscription, as WithoutPubSub says: only locks of packages spinlock and redlock can be used with it`, name)
	}
}

// An Unlock frees the lock for the next poll, and the waiter never stands in the queue.
func TestPolls(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		open := func(opts ...latchkey.Option) *latchkey.Client {
			c, err := rueidisclient.New(s.Option(), opts...)
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		first, err := spinlock.New(open(), "a")
		require.NoError(t, err)
		second, err := spinlock.New(open(latchkey.WithoutPubSub()), "a", spinlock.WithBackoff(time.Millisecond, 20*time.Millisecond))
		require.NoError(t, err)
		held, err := first.Lock(t.Context())
		require.NoError(t, err)
		_, err = second.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		_, err = second.TryLockFor(t.Context(), 50*time.Millisecond)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		got := make(chan *latchkey.Hold)
		go func() {
			h, err := second.Lock(t.Context())
			if err != nil {
				log.Println(err)
			}
			got <- h
		}()
		for range 20 {
			state, err := first.Inspect(t.Context())
			require.NoError(t, err)
			require.Zero(t, state.Waiting)
		}
		require.NoError(t, held.Unlock(t.Context()))
		next := <-got
		require.NotNil(t, next)
		require.Greater(t, next.Token(), held.Token())
		require.Zero(t, next.Sequence())
		require.NoError(t, next.Unlock(t.Context()))
	})
}

// Nobody overtakes those who are queued.
func TestRespectsTheQueue(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	spin, err := spinlock.New(c, "a")
	require.NoError(t, err)
	fair, err := fairlock.New(c, "a")
	require.NoError(t, err)
	held, err := spin.Lock(t.Context())
	require.NoError(t, err)
	got := make(chan *latchkey.Hold)
	go func() {
		h, err := fair.Lock(t.Context())
		if err != nil {
			log.Println(err)
		}
		got <- h
	}()
	require.Eventually(t, func() bool {
		state, err := spin.Inspect(t.Context())
		return err == nil && state.Waiting == 1
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, held.Unlock(t.Context()))
	_, err = spin.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	next := <-got
	require.NotNil(t, next)
	require.NoError(t, next.Unlock(t.Context()))
}

// Also a lock that is free is not taken before those who are queued: the attempt grants it to the first.
// Rule 33.
func TestOvertakesNobody(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		spin := newLock(t, open(t, s.Option()))
		fair, err := fairlock.New(subscribed(t, s.Option()), "a")
		require.NoError(t, err)
		take(t, spin)
		next := later(t, fair)
		require.Eventually(t, func() bool {
			state, err := spin.Inspect(t.Context())
			return err == nil && state.Waiting == 1
		}, long, 5*time.Millisecond)
		do(t, s.Client(t), "DEL", "a")
		_, err = spin.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		state, err := spin.Inspect(t.Context())
		require.NoError(t, err)
		require.Zero(t, state.Waiting)
		require.Equal(t, state.Holder.Token, next.Granted(t).Token())
		unlock(t, next.Hold)
	})
}

// A ForceUnlock that the client cannot hear of: the answer to the release says it, and so does Do.
// Rule 23.
func TestDoOfWhatWasForced(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, err := rueidisclient.New(s.Option(), latchkey.WithoutPubSub())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		l, err := spinlock.New(c, "a")
		require.NoError(t, err)
		other, err := rueidisclient.New(s.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = other.Close() })
		force, err := rlock.New(other, "a")
		require.NoError(t, err)
		err = l.Do(t.Context(), func(_ context.Context, h *latchkey.Hold) error {
			held, err := force.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, held)
			require.NoError(t, h.Err(), "it has not heard of it")
			return nil
		})
		require.ErrorIs(t, err, latchkey.ErrLost)
		require.NotErrorIs(t, err, latchkey.ErrNotRun)
	})
}
