package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A witness adds up how late it was in each second.
func TestWitness(t *testing.T) {
	now := time.Now()
	w := witness{second: now, last: now}
	tick := func(after time.Duration) (time.Duration, bool) {
		now = now.Add(after)
		return w.look(now)
	}
	for range 199 { // on time
		_, over := tick(glance)
		require.False(t, over)
	}
	late, over := tick(glance)
	require.True(t, over)
	require.Zero(t, late)

	for range 20 {
		_, over = tick(25 * time.Millisecond) // 20 ms late each
		require.False(t, over)
	}
	late, over = tick(505 * time.Millisecond)
	require.True(t, over)
	require.Equal(t, 900*time.Millisecond, late)

	late, over = tick(3*time.Second + glance)
	require.True(t, over, "a stall of several seconds")
	require.Equal(t, 3*time.Second, late)
}
