package core_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// The contract of the locks on a cluster: sharded pub/sub, and an inbox for each client and lock.
func TestCluster(t *testing.T) {
	cluster := redistest.NewCluster(t)
	sum := func(section, field string) (total int) {
		for _, s := range cluster.Nodes {
			info, err := do(t, s.Client(t), "INFO", section).ToString()
			require.NoError(t, err)
			for line := range strings.Lines(info) {
				if value, ok := strings.CutPrefix(strings.TrimSpace(line), field); ok {
					var n int
					_, err := fmt.Sscan(value, &n)
					require.NoError(t, err)
					total += n
				}
			}
		}
		return total
	}
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			a, b := open(t, cluster.Option()), open(t, cluster.Option())
			t.Run("uncontended needs no channel", func(t *testing.T) {
				before := sum("stats", "pubsubshard_channels:")
				for n := range 20 {
					h := mustLock(t, newLock(t, a, fmt.Sprint("free", n), delegate))
					require.NoError(t, h.Unlock(t.Context()))
				}
				require.Equal(t, before, sum("stats", "pubsubshard_channels:"))
			})
			t.Run("exclusion and hand-off in all slots", func(t *testing.T) {
				var wg sync.WaitGroup
				for n := range 9 {
					counter, last := 0, int64(0)
					for _, c := range []*core.Client{a, b, a, b} {
						l := newLock(t, c, fmt.Sprint(kind, n), delegate)
						wg.Go(func() {
							for range 25 {
								h, err := l.Lock(t.Context())
								if err != nil {
									t.Error(err)
									return
								}
								if counter++; h.Token() <= last {
									t.Errorf("token %d after %d", h.Token(), last)
								}
								last = h.Token()
								if err := h.Unlock(t.Context()); err != nil {
									t.Error(err)
									return
								}
							}
						})
					}
					t.Cleanup(func() { require.Equal(t, 100, counter) })
				}
				wg.Wait()
			})
			t.Run("granted by message", func(t *testing.T) {
				la, lb := newLock(t, a, "message", delegate), newLock(t, b, "message", delegate)
				h := mustLock(t, la)
				next := lockLater(t, lb)
				queued(t, la, 1)
				began := time.Now()
				require.NoError(t, h.Unlock(t.Context()))
				h = next.wait(t)
				require.Less(t, time.Since(began), time.Second)
				require.NoError(t, h.Unlock(t.Context()))
			})
			t.Run("cancelled", func(t *testing.T) {
				la, lb := newLock(t, a, "cancelled", delegate), newLock(t, b, "cancelled", delegate)
				h := mustLock(t, la)
				next := lockLater(t, lb)
				queued(t, la, 1)
				next.cancel()
				<-next.ended
				require.ErrorIs(t, next.err, context.Canceled)
				queued(t, la, 0)
				require.NoError(t, h.Unlock(t.Context()))
			})
			t.Run("subscription killed", func(t *testing.T) {
				la, lb := newLock(t, a, "killed", delegate), newLock(t, b, "killed", delegate)
				h := mustLock(t, la)
				next := lockLater(t, lb)
				queued(t, la, 1)
				for _, s := range cluster.Nodes {
					killSubscriptions(t, s.Client(t))
				}
				require.NoError(t, h.Unlock(t.Context()))
				began := time.Now()
				require.NoError(t, next.wait(t).Unlock(t.Context()))
				require.Less(t, time.Since(began), 1500*time.Millisecond)
			})
			t.Run("renewed across slots", func(t *testing.T) {
				c := open(t, cluster.Option(), lease(400*time.Millisecond))
				var holds []*core.Hold
				for n := range 30 {
					holds = append(holds, mustLock(t, newLock(t, c, fmt.Sprint("renewed", n), delegate)))
				}
				require.Never(t, func() bool {
					for _, h := range holds {
						if !h.Held() {
							return true
						}
					}
					return false
				}, time.Second, 20*time.Millisecond)
				for _, h := range holds {
					require.NoError(t, h.Unlock(t.Context()))
				}
			})
			for _, s := range cluster.Nodes {
				clean(t, s.Client(t))
			}
		})
	}
}
