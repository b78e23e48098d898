package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
)

// ends are the ways in which a client ends.
var ends = map[string]func(t testing.TB, c *latchkey.Client){
	"Close": func(_ testing.TB, c *latchkey.Client) { c.Close() },
	"Shutdown": func(t testing.TB, c *latchkey.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_ = c.Shutdown(ctx) // which is over before the hold is
	},
}

// A client that is closed is as a server that is away: a hold stays, and others get the lock.
// Rule 38.
func TestOneClientCloses(t *testing.T) {
	redistest.Together(t)
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				servers := five(t, s.Beside)
				plain := plains(t, servers)
				all := clients(t, servers)
				l := lockOf(t, all, latchkey.WithLease(time.Second))
				h := everywhere(t, l, servers)
				end(t, all[3])
				end(t, all[1])
				select {
				case <-h.Context().Done():
					require.FailNow(t, "a majority is there", context.Cause(h.Context()))
				case <-time.After(2 * time.Second):
				}
				unlock(t, h)
				unlock(t, take(t, l))
				clean(t, plain, long)
			})
		})
	}
}

// A hold that has outlived a client is lost by what takes it then, and not because of that client.
// Rule 38.
func TestLostAfterOneClientCloses(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, []*redistest.Server){
		"forced": func(t *testing.T, servers []*redistest.Server) {
			held, err := lockOf(t, clients(t, servers)).ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, held)
		},
		"expired": func(t *testing.T, servers []*redistest.Server) {
			for _, s := range servers[:3] {
				s.Stop(t)
				t.Cleanup(func() { s.Continue(t) })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
				servers := five(t, s.Beside)
				all := clients(t, servers)
				l := lockOf(t, all, latchkey.WithLease(time.Second))
				err := l.Do(t.Context(), func(ctx context.Context, h *latchkey.Hold) error {
					require.Eventually(t, func() bool { return redlock.Parts(h) == 5 }, long, 5*time.Millisecond)
					all[4].Close()
					require.NoError(t, h.Err())
					lose(t, servers)
					<-ctx.Done()
					require.NotErrorIs(t, h.Err(), latchkey.ErrClosed)
					return nil
				})
				require.ErrorIs(t, err, latchkey.ErrLost)
				require.NotErrorIs(t, err, latchkey.ErrClosed)
			})
		})
	}
}

// Once the first client is closed nothing is acquired, also not by whoever has the lock.
func TestNoReentryAfterTheFirstClose(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		all := clients(t, servers)
		l := lockOf(t, all)
		h := everywhere(t, l, servers)
		unlock(t, func() *latchkey.Hold {
			again, err := l.Lock(h.Context())
			require.NoError(t, err)
			return again
		}())
		all[0].Close()
		require.NoError(t, h.Err())
		_, err := l.Lock(h.Context())
		require.ErrorIs(t, err, latchkey.ErrClosed)
		unlock(t, h)
		clean(t, plains(t, servers), long)
	})
}

// The last server that could be the coordinator goes away while a call turns to it: the call asks a majority
// without one, as it does where there never was one.
// Rule 38.
func TestNoCoordinatorIsLeft(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		all := clients(t, five(t, s.Beside))
		require.NoError(t, redlock.AwaitTurn(t.Context(), all, "a"))
		for _, c := range all {
			c.Close()
		}
		require.ErrorIs(t, redlock.AwaitTurn(t.Context(), all, "a"), latchkey.ErrClosed)
	})
}

// When a majority of the clients is closed, holds end with ErrClosed and are released by their Unlock. Who
// waits gets ErrClosed.
// Rule 38.
func TestMajorityOfClientsCloses(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				servers := five(t, s.Beside)
				plain := plains(t, servers)
				all := clients(t, servers)
				l := lockOf(t, all)
				h := everywhere(t, l, servers)
				next := later(t, l)
				for _, c := range all[2:] {
					end(t, c)
				}
				select {
				case <-h.Context().Done():
				case <-time.After(long):
					require.FailNow(t, "it is renewed no more")
				}
				require.ErrorIs(t, h.Err(), latchkey.ErrClosed)
				_ = next.Outcome(t)
				require.ErrorIs(t, next.Err, latchkey.ErrClosed)
				began := time.Now()
				require.NoError(t, h.Unlock(t.Context()))
				clean(t, plain, 5*time.Second)
				s.Within(t, began, 5*time.Second, "long before the end of its lease")
				_, err := l.TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrClosed)
			})
		})
	}
}

// All clients are closed, as at the end of a process: whoever waits hears of it at once, and what is held is
// still released by its Unlock.
// Rule 37.
func TestAllClientsClose(t *testing.T) {
	redistest.Together(t)
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				servers := five(t, s.Beside)
				plain := plains(t, servers)
				all := clients(t, servers)
				l := lockOf(t, all)
				h := take(t, l) // on three servers, and perhaps on all
				next, behind := later(t, l), later(t, l)
				for _, c := range all {
					end(t, c)
				}
				for _, a := range []*attempt{next, behind} {
					_ = a.Outcome(t)
					require.ErrorIs(t, a.Err, latchkey.ErrClosed)
				}
				<-h.Context().Done()
				require.ErrorIs(t, h.Err(), latchkey.ErrClosed)
				require.NoError(t, h.Unlock(t.Context()))
				clean(t, plain, 5*time.Second)
				_, err := l.Lock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrClosed)
			})
		})
	}
}

// A hold that ended because clients were closed, and is never unlocked, leaves nothing for longer than two
// leases: the clients that are left do not renew what is no majority.
func TestNeverUnlockedAfterClose(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		all := clients(t, servers)
		h := everywhere(t, lockOf(t, all, latchkey.WithLease(time.Second)), servers)
		for _, c := range all[2:] {
			c.Close()
		}
		<-h.Context().Done()
		clean(t, plains(t, servers), 5*time.Second)
		require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrClosed)
	})
}
