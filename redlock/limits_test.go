package redlock_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
)

// What a redlock does not promise, as the docs say it, and what it counts with so that it can promise the
// rest.

// drift is what is left out of the trust in a lease, for the clocks of the servers.
func drift(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// forgetters are the ways in which a server gives a lock up before its holder knows.
var forgetters = map[string]struct {
	server func(testing.TB) *redistest.Server
	forget func(testing.TB, *redistest.Server)
}{
	"emptied": {process, func(t testing.TB, s *redistest.Server) {
		c := s.Client(t)
		require.NoError(t, c.Do(t.Context(), c.B().Flushall().Build()).Error())
	}},
	"clock forward": {
		func(t testing.TB) *redistest.Server { return redistest.NewJumping(t) },
		func(t testing.TB, s *redistest.Server) { s.Jump(t, time.Hour) },
	},
}

// A hold that has just begun has a majority, and no server beside it: one that is emptied, or whose clock is
// set forward, is enough for another one. A hold that has all servers stays alone until a majority of them
// is. The token separates the two in both cases.
func TestServersThatForget(t *testing.T) {
	for name, way := range forgetters {
		t.Run(name, func(t *testing.T) {
			servers := five(t, way.server)
			l, other := lockOf(t, clients(t, servers)), lockOf(t, clients(t, servers))
			first := redlock.First(clients(t, servers), "a")
			servers = slices.Concat(servers[first:], servers[:first]) // in the order in which they are asked
			both := func(h *latchkey.Hold) bool {
				t.Helper()
				got, err := other.TryLock(t.Context())
				if err != nil {
					require.ErrorIs(t, err, latchkey.ErrNotAcquired)
					return false
				}
				held := h.Held()
				require.Greater(t, got.Token(), h.Token())
				unlock(t, got)
				return held
			}
			for n := 0; ; n++ { // the others are taken within 50 ms
				require.Less(t, n, 100)
				h := take(t, l)
				way.forget(t, servers[0])
				seen := both(h)
				_ = h.Unlock(t.Context())
				if seen {
					break
				}
			}
			clean(t, plains(t, servers), long)

			for n := 0; ; n++ { // a renewal that comes meanwhile tells the holder
				require.Less(t, n, 100)
				h := everywhere(t, l, servers)
				for _, s := range servers[:2] {
					way.forget(t, s)
					require.False(t, both(h))
				}
				way.forget(t, servers[2])
				seen := both(h)
				_ = h.Unlock(t.Context())
				if seen {
					break
				}
			}
			clean(t, plains(t, servers), long)
		})
	}
}

// Tokens grow from majority to majority as long as a server that both have keeps its data. When that one is
// emptied, and the clock of another one was ahead, they go back.
// Rule 36.
func TestTokensOfTheCommonServer(t *testing.T) {
	redistest.Together(t)
	for name, emptied := range map[string]bool{"keeps its data": false, "is emptied": true} {
		t.Run(name, func(t *testing.T) {
			var servers []*redistest.Server
			for i := range 3 {
				servers = append(servers, redistest.NewJumping(t))
				if i == 0 {
					servers[0].Jump(t, time.Minute)
				}
			}
			without := func(away *redistest.Server) int64 {
				t.Helper()
				away.Stop(t)
				all := lazy(t, servers)
				for i, s := range servers {
					if s != away {
						require.NoError(t, all[i].Check(t.Context())) // it knows the clock
					}
				}
				h := take(t, lockOf(t, all))
				unlock(t, h)
				away.Continue(t)
				settled(t, all)
				return h.Token()
			}
			before := without(servers[2])
			if emptied {
				forgetters["emptied"].forget(t, servers[1])
			}
			after := without(servers[0])
			if emptied {
				require.Less(t, after, before)
			} else {
				require.Greater(t, after, before)
			}
			clean(t, plains(t, servers), long)
		})
	}
}

// The trust in a hold is less than its leases, by what the clocks of the servers may differ.
// Rule 38.
func TestTrustIsLessThanTheLease(t *testing.T) {
	redistest.Together(t)
	const lease = 10 * time.Second
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		l := lockOf(t, clients(t, five(t, s.Beside)), latchkey.WithFixedLease(lease))
		for range 20 {
			h := take(t, l)
			require.LessOrEqual(t, h.Remaining(), lease-drift(lease))
			require.Positive(t, h.Remaining())
			unlock(t, h)
		}
	})
}

// The trust after a renewal counts from when that was sent, and not from its answer.
// Rule 38.
func TestRenewalsAreDelayed(t *testing.T) {
	const lease = 3 * time.Second
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		proxies := make([]*redistest.Proxy, 5)
		for i, s := range servers {
			proxies[i] = redistest.NewProxy(t, s)
		}
		h := everywhere(t, lockOf(t, proxied(t, proxies), latchkey.WithLease(lease)), servers)
		var delayed atomic.Int64
		for _, p := range proxies {
			once, n := redistest.Once(redistest.Delay, redistest.IsRenewal)
			p.Judge(func(request string) redistest.Verdict {
				before := n.Load()
				v := once(request)
				delayed.Add(n.Load() - before)
				return v
			})
		}
		require.Eventually(t, func() bool { return delayed.Load() == 5 }, long, 5*time.Millisecond)
		sent := time.Now() // or before
		<-time.After(lease / 6)
		before := h.Remaining()
		for _, p := range proxies {
			p.Deliver()
		}
		require.Eventually(t, func() bool {
			now := time.Now()
			left := h.Remaining()
			require.LessOrEqual(t, left, lease-drift(lease)-now.Sub(sent))
			return left > before
		}, long, 5*time.Millisecond)
		unlock(t, h)
		clean(t, plains(t, servers), long)
	})
}

// What arrives after the end of a hold is no part of it.
// Rule 37.
func TestPartAfterTheEnd(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		l := lockOf(t, clients(t, servers))
		h := take(t, l)
		unlock(t, h)
		for i := range servers {
			adopted, err := redlock.Adopt(h, i)
			require.NoError(t, err)
			require.False(t, adopted)
		}
		clean(t, plains(t, servers), long)
	})
}
