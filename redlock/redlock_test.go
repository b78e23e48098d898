package redlock_test

import (
	"context"
	"log"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// five are five servers.
func five(t testing.TB, kind func(testing.TB) *redistest.Server) (all []*redistest.Server) {
	t.Helper()
	for range 5 {
		all = append(all, kind(t))
	}
	return all
}

func clients(t testing.TB, servers []*redistest.Server, opts ...latchkey.Option) (all []*latchkey.Client) {
	t.Helper()
	for _, s := range servers {
		c, err := rueidisclient.New(s.Option(), opts...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.Check(t.Context()))
		all = append(all, c)
	}
	return all
}

func process(t testing.TB) *redistest.Server { return redistest.NewProcess(t) }

// One at a time has it, tokens grow, and a release wakes who waits.
func TestOneAtATime(t *testing.T) {
	redistest.Together(t)
	for name, kind := range map[string]func(testing.TB) *redistest.Server{"process": process, "embedded": redistest.NewEmbedded} {
		t.Run(name, func(t *testing.T) {
			servers := five(t, kind)
			a, err := redlock.New(clients(t, servers), "a")
			require.NoError(t, err)
			b, err := redlock.New(clients(t, servers), "a")
			require.NoError(t, err)
			last := int64(0)
			for range 20 {
				held, err := a.Lock(t.Context())
				require.NoError(t, err)
				require.Greater(t, held.Token(), last)
				again, err := a.Lock(held.Context())
				require.NoError(t, err)
				require.NoError(t, again.Unlock(t.Context()))
				require.True(t, held.Held())
				state, err := b.Inspect(t.Context())
				require.NoError(t, err)
				require.Equal(t, held.Token(), state.Holder.Token)
				_, err = b.TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
				_, err = b.TryLockFor(t.Context(), 20*time.Millisecond)
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
				got := make(chan *latchkey.Hold)
				go func() {
					h, err := b.Lock(t.Context())
					if err != nil {
						log.Println(err)
					}
					got <- h
				}()
				require.NoError(t, held.Unlock(t.Context()))
				h := <-got
				require.NotNil(t, h)
				require.Greater(t, h.Token(), held.Token())
				last = h.Token()
				require.NoError(t, h.Unlock(t.Context()))
				require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrNotHeld)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		all := clients(t, servers)
		for name, given := range map[string][]*latchkey.Client{
			"none": nil, "two": all[:2], "nil": {all[0], nil, all[1]}, "twice": {all[0], all[1], all[0]},
		} {
			_, err := redlock.New(given, "a")
			require.ErrorIs(t, err, latchkey.ErrInvalid, name)
		}
		for name, opts := range map[string][]redlock.Option{
			"lease": {latchkey.WithLease(time.Millisecond)}, "both": {latchkey.WithLease(time.Second), latchkey.WithFixedLease(time.Second)},
			"short": {latchkey.WithLease(50 * time.Millisecond)}, "uptime": {redlock.WithUptime(-1)}, "max": {latchkey.WithMaxHold(1)},
		} {
			_, err := redlock.New(all, "a", opts...)
			require.ErrorIs(t, err, latchkey.ErrInvalid, name)
		}
		_, err := redlock.New(all[:4], "a", nil, latchkey.WithoutReentry())
		require.NoError(t, err, "an even number is allowed")
	})
}

// Two servers may be away; with three there is an error within the command timeout, and nothing is left.
func TestServersAway(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		all := clients(t, servers, latchkey.WithCommandTimeout(500*time.Millisecond))
		lock, err := redlock.New(all, "a", latchkey.WithLease(2*time.Second))
		require.NoError(t, err)
		held, err := lock.Lock(t.Context())
		require.NoError(t, err)
		servers[0].Stop(t)
		servers[1].Stop(t)
		<-time.After(3 * time.Second)
		require.NoError(t, held.Err(), "renewal keeps a majority")
		require.NoError(t, held.Unlock(t.Context()))
		began := time.Now()
		held, err = lock.Lock(t.Context())
		require.NoError(t, err)
		s.Within(t, began, 500*time.Millisecond)
		servers[2].Stop(t)
		<-held.Context().Done()
		require.ErrorIs(t, held.Err(), latchkey.ErrLost)
		require.ErrorIs(t, held.Unlock(t.Context()), latchkey.ErrLost)
		began = time.Now()
		_, err = lock.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrUnavailable)
		require.NotErrorIs(t, err, latchkey.ErrNotAcquired)
		s.Within(t, began, time.Second)
		for _, s := range servers[:3] {
			s.Continue(t)
		}
		require.Eventually(t, func() bool {
			h, err := lock.TryLock(t.Context())
			return err == nil && h.Unlock(t.Context()) == nil
		}, 10*time.Second, 10*time.Millisecond)
	})
}

// Tokens that are proposed do not run away from the servers' clocks.
func TestTokensStayNearTheClock(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		lock, err := redlock.New(clients(t, servers), "a")
		require.NoError(t, err)
		last := int64(0)
		for range redistest.Rounds(500, 500) {
			h, err := lock.Lock(t.Context())
			require.NoError(t, err)
			last = h.Token()
			require.NoError(t, h.Unlock(t.Context()))
		}
		// Each is a millisecond ahead of the clock, and as much more as the trip took that told the clock.
		require.Less(t, last, time.Now().Add(100*time.Millisecond).UnixMicro())
	})
}

// Do says that the lock was taken away while its function ran, whoever finds out.
func TestDoIsForced(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		mine, err := redlock.New(clients(t, servers, latchkey.WithoutPubSub()), "a") // so the release finds out
		require.NoError(t, err)
		other, err := redlock.New(clients(t, servers), "a")
		require.NoError(t, err)
		for range 20 {
			err := mine.Do(t.Context(), func(context.Context, *latchkey.Hold) error {
				held, err := other.ForceUnlock(t.Context())
				if !held {
					t.Error("nobody held it")
				}
				return err
			})
			require.ErrorIs(t, err, latchkey.ErrLost)
		}
	})
}

// A majority that is gone is no majority, although one server had the lock until the end.
func TestUnlockOfWhatIsGone(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		plain := plains(t, servers)
		l, err := redlock.New(clients(t, servers), "a")
		require.NoError(t, err)
		for began := time.Now(); ; began = time.Now() {
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			deleted := int64(0)
			for _, c := range plain {
				if deleted < 2 {
					n, err := c.Do(t.Context(), c.B().Del().Key("a").Build()).AsInt64()
					require.NoError(t, err)
					deleted += n
				}
			}
			err = h.Unlock(t.Context())
			if time.Since(began) > 40*time.Millisecond {
				continue // it may have taken the other servers meanwhile
			}
			require.EqualValues(t, 2, deleted)
			require.ErrorIs(t, err, latchkey.ErrLost)
			return
		}
	})
}
