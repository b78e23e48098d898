package traffic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// pauses pauses a job or a lead for a moment, and sees that no run of the job begins in that time, by the clock of the server. The
// pause has an end: this process may be killed.
func (w *worker) pauses(ctx context.Context, rng *rand.Rand, c *client, o plan.Object) {
	why := fmt.Sprint(c.number, "-", rng.Int64())
	what := "pause of " + o.Key
	lasts := time.Duration(1+rng.IntN(300)) * time.Millisecond
	if w.resultOf(c, what, c.Pause(ctx, c.name(o), latchkey.Pause{Why: why, Until: time.Now().Add(lasts)})) != witness.Done {
		return
	}
	before, err := c.Paused(ctx, c.name(o))
	if w.resultOf(c, what, err) != witness.Done || before.Why != why {
		return // it is over, or another process has paused it
	}
	if o.Family == plan.Ticks {
		nap(ctx, time.Duration(rng.IntN(200))*time.Millisecond)
		job, err := once.InspectJob(ctx, c.Client, c.name(o))
		if w.resultOf(c, what, err) != witness.Done {
			return
		}
		after, err := c.Paused(ctx, c.name(o))
		// A clock that is set may leave a run behind that seems to have begun after the pause.
		if w.resultOf(c, what, err) == witness.Done && after == before && !w.Has("clock forward", "clock back") {
			for _, run := range job.Runs {
				if run.Began.UnixMilli() > before.Since.UnixMilli() {
					w.violation("pause", "%s is paused since %v, and a run began at %v", o.Key, before.Since, run.Began)
				}
			}
		}
		if len(job.Runs) > 11 {
			w.violation("inspect", "%s tells of %d runs", o.Key, len(job.Runs))
		}
	}
	if rng.IntN(2) == 0 {
		_ = w.resultOf(c, what, c.Resume(ctx, c.name(o)))
	}
}
