package rlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// However many goroutines wait, one delegate of each process queues in Redis, and they are served in the
// order in which they came.
func TestOneDelegate(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		require.Equal(t, "a", l.Name())
		other, err := fairlock.New(open(t, s), "a") // the same lock, by name
		require.NoError(t, err)
		held, err := other.Lock(t.Context())
		require.NoError(t, err)
		var order []int
		var wg sync.WaitGroup
		for n := range 10 {
			wg.Go(func() {
				if err := l.Do(t.Context(), func(context.Context, *latchkey.Hold) error {
					order = append(order, n)
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
			require.Eventually(t, func() bool { // the first waits in Redis, the others for their turn
				state, err := other.Inspect(t.Context())
				return err == nil && state.Waiting == 1 && (*lock.Lock)(l).InLine() == n
			}, 10*time.Second, time.Millisecond)
		}
		state, err := other.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, state.Waiting)
		require.True(t, state.Holder.Mine)
		require.NoError(t, held.Unlock(t.Context()))
		wg.Wait()
		require.IsIncreasing(t, order)
	})
}
