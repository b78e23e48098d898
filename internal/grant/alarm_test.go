package grant

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// It rings at the earliest time, and once for all that it was set for.
// Rule 40.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var a alarm
		var mu sync.Mutex // that of the queue
		var rings []time.Duration
		set := func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			a.setBy(began.Add(d), func() {
				mu.Lock()
				defer mu.Unlock()
				a.rung()
				rings = append(rings, time.Since(began))
			})
		}
		set(time.Minute)
		set(time.Second)
		set(time.Hour)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, []time.Duration{time.Second}, rings)
		set(3 * time.Hour)
		set(0)
		synctest.Wait()
		set(4 * time.Hour)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		require.Equal(t, []time.Duration{time.Second, 2 * time.Hour, 4 * time.Hour}, rings)
	})
}
