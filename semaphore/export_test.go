package semaphore

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/terms"
)

// Yielding is what a semaphore does without options, with another budget.
func Yielding(holds int, span time.Duration) CountingOption {
	return option(func(o *settings) { o.budget = terms.WithYielding(holds, span) })
}

// RedeclareAfter sets how long the client believes that Redis has a capacity, until the test ends.
func RedeclareAfter(t *testing.T, d time.Duration) {
	before := redeclareAfter
	redeclareAfter = d
	t.Cleanup(func() { redeclareAfter = before })
}

// InLine is how many goroutines of the client stand in the line of a semaphore.
func InLine(s *Semaphore) int { return s.base.p.InLine() }

// InQueue is how many requests of the client are in the queue, as far as it knows.
func InQueue(s *Semaphore) int { return s.base.p.InQueue() }

// PlainInLine is InLine of a plain semaphore.
func PlainInLine(s *Counting) int { return s.base.p.InLine() }

// PlainInQueue is InQueue of a plain semaphore.
func PlainInQueue(s *Counting) int { return s.base.p.InQueue() }
