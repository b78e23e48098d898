package redistest

import (
	"fmt"
	"io"
	"time"
)

// A test of leases takes a machine that stands still for a lock that is lost. So each package says when its
// process stood still. tools/tests reads that, and runs a test that failed at such a time once more, alone. What
// fails without a stall is red.
const (
	glance = 5 * time.Millisecond // how often it looks
	blink  = 5 * time.Millisecond // how much later it may look, on a machine that has time
	// stalled is how late it must have been within a second, in all, for that to be said: leases of tests begin
	// at 200 ms, and are renewed when a third of that is over.
	stalled = 100 * time.Millisecond
)

// witness knows how late it was within a second.
type witness struct {
	second, last time.Time // when the second began, and when it looked last
	late         time.Duration
}

// look returns how late it was within the second that is over now, and true; or that the second goes on.
func (w *witness) look(now time.Time) (late time.Duration, over bool) {
	if late := now.Sub(w.last) - glance; late > blink {
		w.late += late
	}
	w.last = now
	if now.Sub(w.second) < time.Second {
		return 0, false
	}
	late, w.second, w.late = w.late, now, 0
	return late, true
}

// testify says on out when this process stood still, until stop is called. The form of a line is known to
// tools/tests.
func testify(out io.Writer) (stop func()) {
	ends, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticks := time.NewTicker(glance)
		defer ticks.Stop()
		say := func(late time.Duration) {
			if late >= stalled {
				_, _ = fmt.Fprintf(out, "latchkey: stood still for %d ms\n", late.Milliseconds())
			}
		}
		for w := (witness{second: time.Now(), last: time.Now()}); ; {
			select {
			case <-ticks.C:
				late, _ := w.look(time.Now())
				say(late)
			case <-ends:
				late, over := w.look(time.Now())
				if !over { // the last second ends early
					late = w.late
				}
				say(late)
				return
			}
		}
	}()
	return func() {
		close(ends)
		<-ended
	}
}
