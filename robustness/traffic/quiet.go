package traffic

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// Some wake-ups are lost without a trace where much is going on: another message has the waiter ask. So a
// few objects have nothing but one who holds or shuts them, and one waiter of each other process. Then all
// are left alone for longer than it takes until a waiter asks by itself.
const (
	quietFor  = 150 * time.Millisecond
	leftAlone = plan.AsksAgain + plan.Settles
)

// conduct has the first worker shut the quiet latch for a moment, and hold the quiet locks by one basket, then the one with
// two halves.
func (w *worker) conduct(stopping context.Context, rng *rand.Rand) {
	nap(stopping, quietFor)
	c := w.any(rng)
	if c == nil || stopping.Err() != nil {
		return
	}
	w.shutQuietly(stopping, c)
	w.holdQuietly(stopping, rng, c, w.quiet(plan.Locks))
	w.holdQuietly(stopping, rng, c, w.quiet(plan.Halves))
	nap(stopping, leftAlone)
}

func (w *worker) quiet(family plan.Family) (some []plan.Object) {
	for _, o := range w.Objects {
		if o.Quiet && o.Family == family {
			some = append(some, o)
		}
	}
	return some
}

// holdQuietly takes all of these if they are free: so the witness knows well when they are not.
func (w *worker) holdQuietly(stopping context.Context, rng *rand.Rand, c *client, all []plan.Object) {
	var records []*witness.Record
	var locks []*latchkey.Lock
	for _, o := range all {
		r := w.witness.Ask(witness.Section, o, witness.Alone, 1, c.number)
		r.Several = 1
		records, locks = append(records, r), append(locks, w.lockIn(c, o, 0, false))
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	hold, err := latchkey.Must(multilock.New(locks...)).TryLock(ctx)
	if err != nil {
		w.failed(c, records, "quiet locks", false, stopping, err)
		return
	}
	for n, token := range hold.Tokens() {
		for i, l := range locks {
			if l.Name() == n {
				records[i].Granted(hold, token, 0)
			}
		}
	}
	nap(hold.Context(), quietFor)
	for _, r := range records {
		r.Seen(hold)
	}
	result := w.endOf(c, "Unlock of quiet locks", w.unlock(rng, hold.Unlock, records...))
	for _, r := range records {
		r.Over(result)
	}
}

// shutQuietly shuts a latch for a moment.
func (w *worker) shutQuietly(stopping context.Context, c *client) {
	for _, o := range w.quiet(plan.Latch) {
		w.commandLatch(stopping, c, o, witness.LatchRearm, 2)
		nap(stopping, quietFor)
		for range 2 {
			w.commandLatch(stopping, c, o, witness.LatchDown, 1)
		}
	}
}

// attend waits for something quiet, as the only one of its process.
func (w *worker) attend(o plan.Object) func(stopping context.Context, rng *rand.Rand) {
	return func(stopping context.Context, rng *rand.Rand) {
		nap(stopping, time.Duration(10+rng.IntN(30))*time.Millisecond)
		c := w.any(rng)
		switch {
		case c == nil || stopping.Err() != nil:
		case o.Family == plan.Latch:
			w.commandLatch(stopping, c, o, witness.LatchAwait, 0)
		default:
			w.tiny(rng, c, o, 0)
		}
	}
}

// beginQuietly begins what this worker has to do with quiet objects. Of each lock one worker waits, and of a
// latch all but one do.
func (w *worker) beginQuietly(begin func(func(context.Context, *rand.Rand))) {
	if w.Topology == plan.Three {
		return
	}
	if w.Worker == 0 {
		begin(w.conduct)
		return
	}
	for n, o := range slices.Concat(w.quiet(plan.Locks), w.quiet(plan.Halves)) {
		if n%(w.Workers-1) == w.Worker-1 {
			begin(w.attend(o))
		}
	}
	for _, o := range w.quiet(plan.Latch) {
		begin(w.attend(o))
	}
}
