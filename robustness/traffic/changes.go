package traffic

import (
	"context"
	"math/rand/v2"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// take takes an object away: a lock from any holder, or from the one that is seen, and permits with the semaphore,
// which the next request makes again.
func (w *worker) take(rng *rand.Rand, o plan.Object) {
	c := w.any(rng)
	if c == nil {
		return
	}
	r := w.witness.Ask(witness.Taking, o, 0, 0, c.number)
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	var err error
	switch {
	case o.Permits():
		_, err = w.permitsOf(rng, c, o).Delete(ctx)
	default:
		l, _ := w.lockOf(rng, c, o, rng.IntN(2) == 0)
		if rng.IntN(2) == 0 {
			_, err = l.ForceUnlock(ctx)
			break
		}
		var seen latchkey.State
		if seen, err = l.Inspect(ctx); err == nil {
			_, err = l.ForceUnlockToken(ctx, seen.Holder.Token)
		}
	}
	r.Answered(w.resultOf(c, "taking "+o.Key, err), 0, 0)
}

// change sets another capacity. Requests are for so many permits at most that one of them is always enough:
// what is added is taken away again only if it is known to have been added, and while there are as many more.
func (w *worker) change(rng *rand.Rand, o plan.Object) {
	c := w.any(rng)
	if c == nil {
		return
	}
	// One that changes the number by some works beside one that sets it: so one goroutine of one worker does both.
	if w.Worker > 0 {
		w.setOnce(rng, c, o)
		return
	}
	sem := w.permitsOf(rng, c, o)
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	n := o.Capacity + rng.IntN(3)
	r := w.witness.Ask(witness.Setting, o, 0, int64(n), c.number)
	result := w.resultOf(c, "SetCapacity", sem.SetCapacity(ctx, n))
	r.Answered(result, 0, 0)
	if result != witness.Done || rng.IntN(2) == 0 {
		return
	}
	some := 1 + rng.IntN(2)
	r = w.witness.Ask(witness.Setting, o, 0, int64(n+some), c.number)
	sum, err := sem.AddCapacity(ctx, some)
	result = w.resultOf(c, "AddPermits", err, ofPermits...)
	r.Answered(result, 0, 0)
	if result != witness.Done {
		return
	}
	if len(w.Faults) == 0 && sum != n+some {
		w.violation("permits", "%s had %d, %d more are %d", o.Key, n, some, sum)
	}
	_, err = sem.AddCapacity(ctx, -some)
	_ = w.resultOf(c, "AddPermits", err, ofPermits...)
}

// setOnce sets the number unless it is set.
func (w *worker) setOnce(rng *rand.Rand, c *client, o plan.Object) {
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	r := w.witness.Ask(witness.Setting, o, 0, int64(o.Capacity), c.number)
	_, err := w.permitsOf(rng, c, o).TrySetCapacity(ctx, o.Capacity)
	r.Answered(w.resultOf(c, "TrySetCapacity", err), 0, 0)
}

// changeCounting makes, changes or removes a number of plain permits.
func (w *worker) changeCounting(rng *rand.Rand, o plan.Object) {
	c := w.any(rng)
	if c == nil {
		return
	}
	sem := w.countingOf(c, o)
	ctx, cancel := context.WithTimeout(context.Background(), plan.Settles)
	defer cancel()
	mode, n := []int64{witness.PlainAdd, witness.PlainAdd, witness.PlainAdd, witness.PlainInitialize, witness.PlainErase, witness.PlainLook}[rng.IntN(6)], int64(o.Capacity)
	if mode == witness.PlainAdd {
		n = int64(rng.IntN(4) - 1) // more of them than fewer: nobody should wait for long
	}
	r := w.witness.Ask(witness.Command, o, mode, n, c.number)
	var value, extra int64
	var err error
	yes := func(done bool) {
		if done {
			extra = 1
		}
	}
	switch mode {
	case witness.PlainAdd:
		var free int
		free, err = sem.AddPermits(ctx, int(n))
		value = int64(free)
	case witness.PlainInitialize:
		var made bool
		made, err = sem.TrySetPermits(ctx, o.Capacity)
		yes(made)
	case witness.PlainErase:
		var existed bool
		existed, err = sem.Delete(ctx)
		yes(existed)
	default:
		var free int
		free, err = sem.Available(ctx)
		value = int64(free)
	}
	r.Answered(w.resultOf(c, "a change of "+o.Key, err, ofPermits...), value, extra)
}
