package redlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Callers of several processes give up at any moment, also while the token of an attempt is made known. All
// servers are well, and nobody is told otherwise.
func TestNobodyIsAwayWhenCallersGiveUp(t *testing.T) {
	redistest.Together(t)
	servers := five(t, process)
	crowd := lockOf(t, clients(t, servers))
	other := lockOf(t, clients(t, servers))
	rounds := int(redistest.Rounds(200, 2000))
	var wg sync.WaitGroup
	var mu sync.Mutex
	blamed, last := 0, error(nil)
	for i := range 16 {
		wg.Go(func() {
			l := crowd
			if i%2 == 1 {
				l = other
			}
			for range rounds {
				ctx, cancel := context.WithCancel(context.Background())
				began := time.Now()
				stop := time.AfterFunc(rand.N(5*time.Millisecond), cancel)
				h, err := l.Lock(ctx)
				stop.Stop()
				cancel()
				switch {
				case err == nil:
					err = h.Unlock(context.Background())
				case errors.Is(err, latchkey.ErrUnavailable) && time.Since(began) < 50*time.Millisecond: // nobody was silent for longer
					mu.Lock()
					blamed, last = blamed+1, err
					mu.Unlock()
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, blamed, "of %d: %v", 16*rounds, last)
}
