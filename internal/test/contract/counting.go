package contract

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/semaphore"
)

// Permits without holders: the count is exact, whichever client takes and gives back, and whatever breaks.
func (s semaphores) counting(t *testing.T) {
	const capacity = 3
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var last *semaphore.Counting
	for range 3 {
		sem, err := semaphore.NewCounting(s.open(t), "counting", semaphore.WithCapacity(capacity))
		require.NoError(t, err)
		last = sem
		for g := range 4 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					err := sem.Acquire(t.Context(), 1+g%capacity)
					if err = errors.Join(err, sem.Release(t.Context(), 1+g%capacity)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	for i := range 40 { // many, so that the reply of a release is lost as well
		<-time.After(10 * time.Millisecond)
		s.kill(t, []string{"normal", "pubsub"}[i%2])
	}
	close(stop)
	finish(t, &wg)
	require.Eventually(t, func() bool {
		n, err := last.Available(t.Context())
		return err == nil && n == capacity
	}, long, 10*time.Millisecond)
	_, err := last.Delete(t.Context())
	require.NoError(t, err)
}
