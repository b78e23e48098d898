package fairlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// All waiters of all processes are granted in the order in which Redis received them.
func TestFIFOAcrossClients(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		locks := make([]*fairlock.Lock, 3)
		for i := range locks {
			c, err := rueidisclient.New(s.Option())
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			require.NoError(t, c.Check(t.Context()))
			locks[i], err = fairlock.New(c, "a")
			require.NoError(t, err)
		}
		held, err := locks[0].Lock(t.Context())
		require.NoError(t, err)
		require.Zero(t, held.Sequence(), "it did not queue")
		var order []int
		var last int64
		var wg sync.WaitGroup
		for n := range 30 {
			wg.Go(func() {
				if err := locks[n%3].Do(t.Context(), func(_ context.Context, h *latchkey.Hold) error {
					order = append(order, n)
					if s := h.Sequence(); s != 0 { // it is, for one that asked again just while it was granted
						if s <= last {
							t.Errorf("sequence %d after %d", s, last)
						}
						last = s
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
			require.Eventually(t, func() bool {
				state, err := locks[0].Inspect(t.Context())
				return err == nil && state.Waiting == n+1 && len(state.Waiters) == n+1
			}, 10*time.Second, time.Millisecond)
		}
		require.NoError(t, held.Unlock(t.Context()))
		wg.Wait()
		require.IsIncreasing(t, order)
		require.Positive(t, last)
	})
}
