package redlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
)

// away are the ways in which servers go, each with the way back.
var away = map[string][2]func(testing.TB, *redistest.Server){
	"killed":  {func(_ testing.TB, s *redistest.Server) { s.Kill() }, func(t testing.TB, s *redistest.Server) { s.Start(t) }},
	"stopped": {func(t testing.TB, s *redistest.Server) { s.Stop(t) }, func(t testing.TB, s *redistest.Server) { s.Continue(t) }},
}

// everywhere takes the lock, and waits until it has the servers that were not asked, too.
func everywhere(t testing.TB, l *redlock.Lock, servers []*redistest.Server) *latchkey.Hold {
	t.Helper()
	h := take(t, l)
	require.Eventually(t, func() bool { return redlock.Parts(h) == len(servers) }, long, 5*time.Millisecond)
	return h
}

// A hold stays while two of five servers are away, for longer than its lease, and is lost when a third one
// goes: when the leases of a majority end, and no later. What is left on the others runs out.
// Rule 38.
func TestMajorityIsLost(t *testing.T) {
	for name, way := range away {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const length = time.Second
			redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
				servers := five(t, s.Beside)
				l := lockOf(t, clients(t, servers), latchkey.WithLease(length))
				h := everywhere(t, l, servers)
				way[0](t, servers[0])
				way[0](t, servers[1])
				select {
				case <-h.Context().Done():
					require.FailNow(t, "a majority is there", context.Cause(h.Context()))
				case <-time.After(2 * length):
				}
				require.True(t, h.Held())
				require.Positive(t, h.Remaining())
				way[0](t, servers[2])
				gone := time.Now()
				select {
				case <-h.Context().Done():
				case <-time.After(long):
					require.FailNow(t, "two of five are no majority")
				}
				s.Within(t, gone, length+105*time.Millisecond, "100 ms after it")
				require.Greater(t, time.Since(gone), length/3, "its lease had been renewed not long before")
				require.ErrorIs(t, h.Err(), latchkey.ErrLost)
				require.False(t, h.Held())
				require.Zero(t, h.Remaining())
				require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
				for _, s := range servers[:3] {
					way[1](t, s)
				}
				clean(t, plains(t, servers), 5*length)
				again := take(t, l)
				require.Greater(t, again.Token(), h.Token())
				unlock(t, again)
			})
		})
	}
}

// A server that comes back empty is taken again while the lock is held. So the hold lasts although all five
// are restarted, one after the other, and its token does not change.
// Rule 38.
func TestRollingRestart(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		l := lockOf(t, clients(t, servers), latchkey.WithLease(1500*time.Millisecond))
		other := lockOf(t, clients(t, servers))
		plain := plains(t, servers)
		h := everywhere(t, l, servers)
		for i, s := range servers {
			s.Restart(t)
			require.Eventually(t, func() bool {
				n, err := plain[i].Do(context.Background(), plain[i].B().Exists().Key("a").Build()).AsInt64()
				return err == nil && n == 1 && redlock.Parts(h) == 5
			}, long, 5*time.Millisecond)
			require.NoError(t, h.Err(), "restart %d", i)
			_, err := other.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		}
		require.Eventually(t, func() bool {
			state, err := l.Inspect(context.Background())
			return err == nil && state.Holder.Token == h.Token()
		}, long, 5*time.Millisecond, "the servers that were taken again know the token")
		token := h.Token()
		unlock(t, h)
		clean(t, plain, long)
		next := take(t, other)
		require.Greater(t, next.Token(), token)
		unlock(t, next)
	})
}

// ForceUnlock takes the lock away everywhere: the holder hears of it, who waits gets it.
func TestForceUnlock(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		l, other := lockOf(t, clients(t, servers)), lockOf(t, clients(t, servers))
		held, err := l.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.False(t, held)
		state, err := l.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, latchkey.State{}, state)
		h := everywhere(t, l, servers)
		next := later(t, other)
		state, err = other.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, h.Token(), state.Holder.Token)
		require.NotEmpty(t, state.Holder.Owner)
		require.InDelta(t, 10*time.Second, state.Holder.Remaining, float64(4*time.Second))
		began := time.Now()
		held, err = other.ForceUnlockToken(t.Context(), state.Holder.Token-1)
		require.NoError(t, err)
		require.False(t, held, "it is another's")
		require.True(t, h.Held())
		_, err = other.ForceUnlockToken(t.Context(), -1)
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		held, err = other.ForceUnlockToken(t.Context(), state.Holder.Token)
		require.NoError(t, err)
		require.True(t, held)
		got := next.Granted(t)
		require.Less(t, next.At.Sub(began), 900*time.Millisecond)
		<-h.Context().Done()
		require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
		require.True(t, got.Held(), "a late Unlock of what was taken away changes nothing")
		unlock(t, got)
		clean(t, plains(t, servers), long)
	})
}

// retaken has a hold lose its part on a server, and take another one there.
func retaken(t testing.TB, h *latchkey.Hold, s *redistest.Server, i int) {
	t.Helper()
	before := redlock.Parts(h)
	single, err := rlock.New(clients(t, []*redistest.Server{s})[0], "a")
	require.NoError(t, err)
	held, err := single.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	require.Eventually(t, func() bool { return redlock.Parts(h) < before }, long, 5*time.Millisecond)
	adopted, err := redlock.Adopt(h, i)
	require.NoError(t, err)
	require.True(t, adopted)
	require.Equal(t, before, redlock.Parts(h))
}

// ForceUnlock is heard of on servers that were taken again as well, whose own tokens are greater than the one
// that all name.
func TestForceUnlockOfWhatWasRetaken(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)[:3]
		l, other := lockOf(t, clients(t, servers), latchkey.WithLease(time.Hour)), lockOf(t, clients(t, servers))
		h := everywhere(t, l, servers)
		for i, s := range servers {
			retaken(t, h, s, i)
		}
		held, err := other.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, held)
		select {
		case <-h.Context().Done():
			require.ErrorIs(t, h.Err(), latchkey.ErrLost)
		case <-time.After(long):
			require.FailNow(t, "it waits for a renewal, twenty minutes later")
		}
		clean(t, plains(t, servers), long)
	})
}

// A longest hold is over when it is, although the servers were taken again meanwhile.
func TestLongestHoldOfWhatWasRetaken(t *testing.T) {
	const longest = 3 * time.Second
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)[:3]
		h := everywhere(t, lockOf(t, clients(t, servers), latchkey.WithMaxHold(longest)), servers)
		began := time.Now()
		<-time.After(longest / 2)
		for i, s := range servers {
			retaken(t, h, s, i)
		}
		<-h.Context().Done()
		s.Within(t, began, longest+longest/3)
		require.ErrorContains(t, context.Cause(h.Context()), "its fixed lease or longest hold is over")
		clean(t, plains(t, servers), long)
	})
}

// A hold that goes on with fewer parts ends with the trust in those, and no later: here the last one of a
// majority is not renewed any more when another one is lost.
// Rule 38.
func TestTrustShrinks(t *testing.T) {
	const lease = 10 * time.Second
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)[:4]
		silent := redistest.NewProxy(t, servers[3])
		all := append(clients(t, servers[:3]), proxied(t, []*redistest.Proxy{silent})...)
		h := everywhere(t, lockOf(t, all, latchkey.WithLease(lease)), servers)
		silent.Judge(func(request string) redistest.Verdict {
			if redistest.IsRenewal(request) {
				return redistest.LoseRequest
			}
			return redistest.Pass
		})
		<-time.After(lease * 85 / 100) // until then that one has been trusted, and it has been looked for missing ones at two thirds
		single, err := rlock.New(clients(t, servers[:1])[0], "a")
		require.NoError(t, err)
		forced, err := single.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
		require.Eventually(t, func() bool { return redlock.Parts(h) == 3 }, long, 5*time.Millisecond)
		require.True(t, h.Held())
		servers[0].Stop(t) // nothing is taken again
		for redlock.Left(h) > 0 {
			time.Sleep(time.Millisecond)
		}
		over := time.Now()
		<-h.Context().Done()
		s.Within(t, over, drift(lease)*3/4)
		servers[0].Continue(t)
		silent.Judge(nil)
		require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
	})
}

// Parts that are lost while others are being taken, by ForceUnlock here, are no part of a majority.
// Rule 37.
func TestForceUnlockDuringAttempts(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		// Lua in Go keeps an answer back for most of a second where other tests want the machine, too. Here it is
		// not about servers that are silent.
		patient := latchkey.WithCommandTimeout(10 * time.Second)
		l, other := lockOf(t, clients(t, servers, patient)), lockOf(t, clients(t, servers, patient))
		ctx, stop := context.WithCancel(t.Context())
		var forcing sync.WaitGroup
		forcing.Go(func() {
			for ctx.Err() == nil {
				_, _ = other.ForceUnlock(t.Context()) // answered: one that is cancelled may still take the last hold
			}
		})
		for range redistest.Rounds(300, 300) {
			h, err := l.TryLock(t.Context())
			if err == nil {
				_ = h.Unlock(t.Context()) // lost, or not
			} else {
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			}
		}
		stop()
		forcing.Wait()
		unlock(t, take(t, l))
		clean(t, plains(t, servers), long)
	})
}
