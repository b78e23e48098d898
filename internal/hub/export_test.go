package hub

import (
	"testing"
	"time"
)

// Hasty makes hubs give up channels after d, and connections after so many of them, until the test ends.
func Hasty(t *testing.T, d time.Duration, n int) {
	beforeIdle, beforeAbandoned := idleTime, maxAbandoned
	idleTime, maxAbandoned = d, n
	t.Cleanup(func() { idleTime, maxAbandoned = beforeIdle, beforeAbandoned })
}
