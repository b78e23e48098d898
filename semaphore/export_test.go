package semaphore

import (
	"testing"
	"time"
)

// RedeclareAfter sets how long Redis is believed to know a capacity, until the test ends.
func RedeclareAfter(t *testing.T, d time.Duration) {
	before := redeclare
	redeclare = d
	t.Cleanup(func() { redeclare = before })
}
