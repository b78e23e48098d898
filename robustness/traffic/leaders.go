package traffic

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// trusted is a term as a hold: how long it will last is not known.
type trusted struct{ context.Context }

func (t trusted) Held() bool { return t.Err() == nil }

func (t trusted) Remaining() time.Duration {
	if t.Err() != nil {
		return 0
	}
	return time.Nanosecond
}

// campaign is a candidate for a while. That of the second worker is preferred now and then.
func (w *worker) campaign(stopping context.Context, rng *rand.Rand, c *client, o plan.Object, n int) {
	ctx, cancel := context.WithTimeout(stopping, time.Duration(50+rng.IntN(2000))*time.Millisecond)
	defer cancel()
	var options []leader.Option
	if w.Worker == 1 && rng.IntN(2) == n {
		options = append(options, leader.WithPreferred())
	}
	candidate := latchkey.Must(leader.New(c.Client, c.name(o), append(options, w.terms(rng, o)...)...))
	err := candidate.Run(ctx, func(ctx context.Context, term leader.Term) error {
		r := w.witness.Ask(witness.Run, o, witness.Alone, 0, c.number)
		r.Granted(trusted{ctx}, term.Token(), 0)
		if early := time.Until(term.Since()); early > plan.Settles && len(w.Faults) == 0 {
			w.violation("term", "%s began in %v", o.Key, early)
		}
		rounds := 1 + rng.IntN(20)
		if rng.IntN(4) == 0 { // longer than a lease, as a rule
			rounds *= 50
		}
		for range rounds {
			if ctx.Err() != nil {
				break
			}
			w.inside(ctx, rng, stack{held{object: o, client: c, token: term.Token(), ctx: ctx}}, func() { r.Seen(trusted{ctx}) })
			nap(ctx, time.Duration(rng.IntN(5))*time.Millisecond)
			r.Seen(trusted{ctx})
		}
		if rng.IntN(4) == 0 {
			candidate.Resign()
		}
		r.Leaves()
		r.Over(witness.Done)
		return nil
	})
	_ = w.resultOf(c, "leader "+o.Key, err, leader.ErrResigned)
}

// terms are options of a candidate.
func (w *worker) terms(rng *rand.Rand, o plan.Object) (options []leader.Option) {
	lease := w.Lease()
	if rng.IntN(2) == 0 && !w.Calm() {
		lease = brief
		options = append(options, leader.WithLease(lease))
	}
	if rng.IntN(2) == 0 {
		options = append(options, leader.WithGrace(lease/time.Duration(2+rng.IntN(4))))
	}
	return append(options, leader.WithOverrun(func(overrun leader.Overrun) {
		if overrun.Err == nil || overrun.Term.Token() == 0 {
			w.violation("overrun", "of %s: %+v", o.Key, overrun)
		}
	}))
}
