package rlock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// lingering is a lock that lingers for longer than a test takes, unless d says otherwise.
func lingering(t *testing.T, c *latchkey.Client, name string, d time.Duration, more ...rlock.Option) *rlock.Lock {
	t.Helper()
	if d == 0 {
		d = time.Minute
	}
	l, err := rlock.New(c, name, append([]rlock.Option{rlock.WithLinger(d)}, more...)...)
	require.NoError(t, err)
	return l
}

// pair locks and unlocks once, and returns the token.
func pair(t *testing.T, l *latchkey.Lock) int64 {
	t.Helper()
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	token := h.Token()
	require.NoError(t, h.Unlock(t.Context()))
	return token
}

// free waits until nobody has the lock.
func free(t *testing.T, l *latchkey.Lock) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := l.Inspect(t.Context())
		return err == nil && s.Holder.Owner == ""
	}, 10*time.Second, time.Millisecond)
}

// Taking a lingering lock again costs no command, and its tokens grow.
// Rule 40.
func TestLingers(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", 0)
		last := pair(t, l)
		before, err := l.Inspect(t.Context())
		require.NoError(t, err)
		for range 100 {
			token := pair(t, l)
			require.Greater(t, token, last)
			last = token
		}
		after, err := l.Inspect(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, after.Holder.Owner)
		require.Equal(t, before.Holder.Owner, after.Holder.Owner, "one id had it all the while")
	})
}

// That is so although nobody has asked for longer than a process hands on without an offer.
// Rule 40.
func TestLingerCostsNothing(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", 0)
		pair(t, l)
		before := s.Scripts(t)
		for range 100 {
			pair(t, l)
		}
		<-time.After(50 * time.Millisecond)
		pair(t, l)
		h, err := l.TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Unlock(t.Context()))
		require.Equal(t, before, s.Scripts(t))
	})
}

// The first other process that wants it has it at once.
// Rule 40.
func TestLingerEndsWhenOthersWant(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", 0)
		other, err := fairlock.New(open(t, s), "a")
		require.NoError(t, err)
		again := lingering(t, open(t, s), "a", 0)
		last := int64(0)
		for range 5 {
			for _, lock := range []*latchkey.Lock{l, other, again} {
				began := time.Now()
				token := pair(t, lock)
				require.Greater(t, token, last)
				last = token
				s.Within(t, began, time.Second)
			}
		}
	})
}

// Two processes that use it as fast as they can never wait for the other's linger to end.
// Rule 40.
func TestLingerIsNoRace(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		var wg sync.WaitGroup
		for range 2 {
			l := lingering(t, open(t, s), "a", 0)
			wg.Go(func() {
				for range 1000 {
					began := time.Now()
					h, err := l.Lock(t.Context())
					if err != nil || time.Since(began) > 10*time.Second {
						t.Errorf("after %v: %v", time.Since(began), err)
						return
					}
					if err := h.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestLingerEnds(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", 50*time.Millisecond)
		began := time.Now()
		pair(t, l)
		free(t, l)
		require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
	})
}

// A TryLock of another client gets a lingering lock, whichever lock of the name it is.
// Rule 40.
func TestTryLockEndsLinger(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", 0)
		for name, try := range attempts(t, s, "a") {
			s.Run(t, name, func(t *testing.T) {
				fastest := time.Minute
				for range 5 {
					pair(t, l)
					began := time.Now()
					h, err := try(t.Context())
					require.NoError(t, err)
					fastest = min(fastest, time.Since(began))
					require.NoError(t, h.Unlock(t.Context()))
				}
				require.Less(t, fastest, 50*time.Millisecond, "the owner has answered")
			})
		}
	})
}

// A lock that is really held is not had, and the owner says so.
// Rule 40.
func TestTryLockOfALockThatMayLinger(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", 0)
		for name, try := range attempts(t, s, "a") {
			s.Run(t, name, func(t *testing.T) {
				h, err := l.Lock(t.Context())
				require.NoError(t, err)
				_, err = try(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
				require.NoError(t, h.Err())
				require.NoError(t, h.Unlock(t.Context()))
				free(t, l) // others want it
			})
		}
	})
}
