package semaphore

import (
	"testing"
	"time"
)

// RedeclareAfter sets how long the client believes that Redis has a capacity, until the test ends.
func RedeclareAfter(t *testing.T, d time.Duration) {
	before := redeclareAfter
	redeclareAfter = d
	t.Cleanup(func() { redeclareAfter = before })
}
