package redlock_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// Where each round trip takes half a second, a lock that is wanted is free for no longer than a lease and a second.
func TestFarServers(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, _ *redistest.Server) {
		const processes, lease = 8, 5 * time.Second
		servers := make([]*redistest.Server, 5)
		for i := range servers {
			servers[i] = redistest.Far(t, 150*time.Millisecond, 300*time.Millisecond)
		}
		locks := make([]*redlock.Lock, processes)
		for i := range locks {
			var all []*latchkey.Client
			for _, s := range servers {
				c := client(t, s, latchkey.WithLease(lease))
				require.NoError(t, c.Check(t.Context()))
				all = append(all, c)
			}
			locks[i] = lockOf(t, all)
			unlock(t, take(t, locks[i])) // the scripts are known
		}
		var mu sync.Mutex
		held, waiting, free, longest, turns := 0, 0, time.Now(), time.Duration(0), 0
		idle := func() {
			if held == 0 && waiting > 0 {
				longest = max(longest, time.Since(free))
			}
		}
		var wg sync.WaitGroup
		for _, l := range locks {
			wg.Go(func() {
				for began := time.Now(); time.Since(began) < 30*time.Second; {
					mu.Lock()
					if waiting++; held == 0 && waiting == 1 {
						free = time.Now()
					}
					mu.Unlock()
					h, err := l.Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					idle()
					if waiting--; held > 0 {
						t.Error("two have it")
					}
					held++
					turns++
					mu.Unlock()
					time.Sleep(rand.N(2 * time.Second))
					mu.Lock()
					if held--; held == 0 {
						free = time.Now()
					}
					mu.Unlock()
					if err := h.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		t.Logf("%d turns, free for %v at most while it was wanted", turns, longest)
		require.Less(t, longest, lease+time.Second)
	})
}

func client(t testing.TB, s *redistest.Server, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	c, err := rueidisclient.New(s.Option(), append([]latchkey.Option{latchkey.WithLazyConnect()}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
