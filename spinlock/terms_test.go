package spinlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

func TestReentry(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		l := newLock(t, c)
		h := take(t, l)
		again, err := l.Lock(h.Context())
		require.NoError(t, err)
		require.Equal(t, h.Token(), again.Token())
		_, err = newLock(t, c, latchkey.WithoutReentry()).Lock(again.Context())
		require.ErrorIs(t, err, latchkey.ErrReentered)
		unlock(t, h)
		_, err = newLock(t, open(t, s.Option())).TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "the inner hold goes on")
		unlock(t, again)
		free(t, s)
	})
}

// What is held for a shortest time stays taken after its Unlock, and a waiter polls until it is over.
func TestMinHold(t *testing.T) {
	const shortest = 400 * time.Millisecond
	s := redistest.New(t)
	began := time.Now()
	h := take(t, newLock(t, open(t, s.Option()), latchkey.WithMinHold(shortest)))
	acquired := time.Now()
	next := later(t, newLock(t, open(t, s.Option())))
	unlock(t, h)
	_, err := newLock(t, open(t, s.Option())).TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	got := next.Granted(t)
	require.GreaterOrEqual(t, next.At.Sub(began), shortest-10*time.Millisecond)
	require.Less(t, next.At.Sub(acquired), shortest+soon)
	unlock(t, got)
	free(t, s)
}

// A hold that may not go on for longer is lost at that time, and the next poll has the lock.
func TestLongestHolds(t *testing.T) {
	const longest = 400 * time.Millisecond
	for name, option := range map[string]spinlock.Option{
		"max hold": latchkey.WithMaxHold(longest), "fixed lease": latchkey.WithFixedLease(longest),
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				h := take(t, newLock(t, open(t, s.Option()), option, spinlock.WithBackoff(time.Millisecond, 10*time.Millisecond)))
				acquired := time.Now()
				next := later(t, newLock(t, open(t, s.Option())))
				<-h.Context().Done()
				require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
				got := next.Granted(t)
				require.Less(t, next.At.Sub(acquired), longest+soon)
				require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
				require.True(t, got.Held())
				unlock(t, got)
				free(t, s)
			})
		})
	}
}

// Tokens grow from one kind of lock to the next, and from client to client.
func TestTokensOfAllLocksGrow(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := subscribed(t, s.Option())
		spin, mute := newLock(t, c), newLock(t, open(t, s.Option()))
		reentrant, err := rlock.New(c, "a")
		require.NoError(t, err)
		fair, err := fairlock.New(c, "a")
		require.NoError(t, err)
		last := int64(0)
		for range 3 {
			for _, l := range []*latchkey.Lock{spin, reentrant, mute, fair} {
				h := take(t, l)
				require.Greater(t, h.Token(), last)
				last = h.Token()
				for _, other := range []*latchkey.Lock{spin, reentrant, mute, fair} {
					_, err := other.TryLock(t.Context())
					require.ErrorIs(t, err, latchkey.ErrNotAcquired)
				}
				unlock(t, h)
			}
		}
	})
}

// A lock that Redisson holds is somebody else's, until its lease ends or it is deleted.
func TestRedissonHolds(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const theirs = "8743c9c0-0795-4907-87fd-6c719a6b4586:1"
		plain := s.Client(t)
		l := newLock(t, open(t, s.Option()))
		for _, ends := range []string{"DEL", "PEXPIRE"} {
			do(t, plain, "HSET", "a", theirs, "1")
			do(t, plain, "HINCRBY", "a", theirs, "1") // it re-enters
			do(t, plain, "PEXPIRE", "a", "30000")
			_, err := l.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			state, err := l.Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, theirs, state.Holder.Owner)
			next := later(t, l)
			_, err = l.TryLockFor(t.Context(), 50*time.Millisecond)
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			reply := do(t, plain, "HGETALL", "a")
			fields, err := reply.AsStrMap()
			require.NoError(t, err)
			require.Equal(t, map[string]string{theirs: "2"}, fields, "untouched")
			if ends == "DEL" {
				do(t, plain, "DEL", "a")
			} else {
				do(t, plain, "PEXPIRE", "a", "100")
			}
			unlock(t, next.Granted(t))
		}
	})
}
