package retry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/retry"
)

func TestTally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var under retry.Tally
		add := func(n int) { mu.Lock(); defer mu.Unlock(); under.Add(n) }
		none := func() <-chan struct{} { mu.Lock(); defer mu.Unlock(); return under.None() }
		require.Nil(t, none())
		require.NoError(t, retry.Await(t.Context(), none()), "nothing is under way")
		for range 2 { // it serves again
			add(2)
			var woken int
			var waiting sync.WaitGroup
			for range 3 {
				ended := none()
				waiting.Go(func() {
					err := retry.Await(context.Background(), ended)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						woken++
					}
				})
			}
			add(-1)
			synctest.Wait()
			require.Zero(t, woken, "one is still under way")
			add(-1)
			waiting.Wait()
			require.Equal(t, 3, woken)
			require.Zero(t, under.N())
		}
		add(1)
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		require.ErrorIs(t, retry.Await(ctx, none()), why)
	})
}
