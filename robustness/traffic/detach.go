package traffic

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// detachable is what can be left to another client: a lock, or permits.
type detachable interface {
	witness.Holding
	Token() int64
	Detach(ctx context.Context) (string, error)
	DetachFor(ctx context.Context, d time.Duration) (string, error)
}

// leaves is how often what is held is left to another client, or to the same one: one time of so many.
const leaves = 16

// leave leaves what is held, and goes on with it on some client of the process, with a record of its own. It
// also returns the client that has it then, and false when it is not there any more, or could not be left.
// attach is called with the other client.
func leave[H detachable](w *worker, rng *rand.Rand, c *client, o plan.Object, hold H, r *witness.Record, attach func(c *client, ctx context.Context, text string) (H, error)) (H, *client, *witness.Record, bool) {
	other := w.any(rng)
	if other == nil || !o.Mixed() && other.what == mute || rng.IntN(2) == 0 {
		other = c
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	next := w.witness.Ask(witness.Section, o, r.Mode, r.N, other.number)
	next.Extra, next.Ends = 1, r.Ends // it is no grant of its own
	var text string
	result := w.endOf(c, "Detach of "+o.Key, w.unlock(rng, func(ctx context.Context) (err error) {
		if rng.IntN(2) == 0 {
			text, err = hold.Detach(ctx)
		} else {
			text, err = hold.DetachFor(ctx, fixed)
		}
		return err
	}, r))
	r.Over(result)
	if text == "" {
		next.Over(result)
		return hold, c, next, false
	}
	got, err := attach(other, ctx, text)
	if err != nil {
		next.Over(w.resultOf(other, "Attach of "+o.Key, err, latchkey.ErrNotHeld))
		return hold, c, next, false
	}
	next.Granted(got, r.Token, 0)
	if got.Token() != r.Token {
		w.violation("tokens", "%s was held with %d, and goes on with %d", o.Key, r.Token, got.Token())
	}
	return got, other, next, true
}
