package semaphore

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
)

// Yielding is what a semaphore does without options, with another budget.
func Yielding(holds int, span time.Duration) Option {
	return func(o *settings) { o.budget = grant.WithYielding(holds, span) }
}

// RedeclareAfter sets how long the client believes that Redis has a capacity, until the test ends.
func RedeclareAfter(t *testing.T, d time.Duration) {
	before := redeclareAfter
	redeclareAfter = d
	t.Cleanup(func() { redeclareAfter = before })
}
