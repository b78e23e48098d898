package core_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// What nobody waits for costs no goroutine, whatever the primitive: barriers that have been passed, or that
// the client is a member of, latches that are open, locks whose waiters have left. In a cluster a name's
// channel has a goroutine, and few are kept.
func TestNamesCostNoGoroutine(t *testing.T) {
	topologies := map[string]func() (rueidis.ClientOption, int){
		"server":  func() (rueidis.ClientOption, int) { return redistest.NewProcess(t).Option(), 50 },
		"cluster": func() (rueidis.ClientOption, int) { return redistest.NewCluster(t).Option(), 400 },
	}
	for topology, begin := range topologies {
		option, most := begin()
		other := open(t, option)
		for what, use := range map[string]func(t *testing.T, c *core.Client, name string) error{
			"awaited": func(t *testing.T, c *core.Client, name string) error {
				b, err := core.NewBarrier(c, name, 2, core.BarrierOptions{WithoutMembership: true})
				require.NoError(t, err)
				var g errgroup.Group
				for range 2 {
					g.Go(func() error { _, _, err := b.Await(t.Context()); return err })
				}
				return g.Wait()
			},
			"joined": func(t *testing.T, c *core.Client, name string) error {
				b, err := core.NewBarrier(c, name, 2, core.BarrierOptions{})
				require.NoError(t, err)
				return b.Join(t.Context())
			},
			"latch": func(t *testing.T, c *core.Client, name string) error {
				one := int64(1)
				l, err := core.NewLatch(c, name, core.LatchOptions{Count: &one})
				require.NoError(t, err)
				var g errgroup.Group
				g.Go(func() error { return l.Await(t.Context()) })
				_, _, err = l.CountDown(t.Context(), 1)
				require.NoError(t, err)
				return g.Wait()
			},
			"lock": func(t *testing.T, c *core.Client, name string) error {
				h := mustLock(t, newLock(t, other, name, true))
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				_, err := newLock(t, c, name, true).Lock(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				return h.Unlock(t.Context())
			},
		} {
			t.Run(topology+"/"+what, func(t *testing.T) {
				before := runtime.NumGoroutine()
				c := open(t, option)
				var g errgroup.Group
				g.SetLimit(30)
				for i := range 1000 {
					g.Go(func() error { return use(t, c, fmt.Sprint(what, i)) })
				}
				require.NoError(t, g.Wait())
				require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+most }, long, 5*time.Millisecond, "%d", runtime.NumGoroutine())
			})
		}
	}
}

// Between two readings nothing runs for a member, and nobody holds its Barrier: its client renews it all the
// same, for as long as it has not left.
func TestMemberStaysWhatNobodyHolds(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		lease := 300 * time.Millisecond
		joined := func(c *core.Client) *core.Barrier {
			b, err := core.NewBarrier(c, "a", 2, core.BarrierOptions{Lease: &lease})
			require.NoError(t, err)
			require.NoError(t, b.Join(t.Context()))
			return b
		}
		other := joined(open(t, s.Option()))
		c := open(t, s.Option())
		joined(c)
		for end := time.Now().Add(4 * lease); time.Now().Before(end); {
			runtime.GC()
			round, err := other.Inspect(t.Context())
			require.NoError(t, err)
			require.NotEqual(t, lua.Broken, round.Phase)
			time.Sleep(lease / 10)
		}
		require.NoError(t, other.Leave(t.Context()))
	})
}
