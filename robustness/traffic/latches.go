package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// inspect is one more command of a latch: a count, as records have it.
const inspect = witness.LatchAwaitSet + 1

// useLatch does one thing with a latch.
func (w *worker) useLatch(stopping context.Context, rng *rand.Rand, o plan.Object) {
	nap(stopping, time.Duration(rng.IntN(40))*time.Millisecond)
	c := w.any(rng)
	if c == nil {
		return
	}
	mode, n := int64(rng.IntN(int(inspect)+1)), int64(1+rng.IntN(4))
	if mode == witness.LatchRemove && rng.IntN(4) > 0 {
		mode = witness.LatchDown
	}
	limit := time.Duration(100+rng.IntN(300)) * time.Millisecond
	if (mode == witness.LatchAwait || mode == witness.LatchAwaitOpen || mode == witness.LatchAwaitSet) && rng.IntN(3) == 0 {
		limit = 4 * time.Second
	}
	ctx, cancel := context.WithTimeout(stopping, limit)
	defer cancel()
	w.commandLatch(ctx, c, o, mode, n)
}

// latchOf returns a latch of a client, for what a command is to do where it is not set.
func (c *client) latchOf(o plan.Object, mode int64) *countdown.Latch {
	if mode == inspect {
		mode = witness.LatchCount
	}
	key := fmt.Sprint(o.Key, max(mode, witness.LatchCount))
	if made, known := c.handles.Load(key); known {
		return made.(*countdown.Latch)
	}
	var options []countdown.Option
	switch {
	case mode == witness.LatchAwaitOpen:
		options = append(options, countdown.WithOpenWhenUnset())
	case mode == witness.LatchAwaitSet:
		options = append(options, countdown.WithWaitForSet())
	case o.Timed:
		options = append(options, countdown.WithCount(2))
	}
	if o.Timed {
		options = append(options, countdown.WithTTL(fixed))
	}
	latch := latchkey.Must(countdown.New(c.Client, c.name(o), options...))
	c.handles.Store(key, latch)
	return latch
}

// commandLatch sends one command to a latch, and writes down what came of it.
func (w *worker) commandLatch(ctx context.Context, c *client, o plan.Object, mode, n int64) {
	latch := c.latchOf(o, mode)
	w.named(c, o, latch.Name())
	r := w.witness.Ask(witness.Command, o, min(mode, witness.LatchAwaitSet), n, c.number)
	if mode == inspect {
		r.Mode = witness.LatchCount
	}
	var value, extra int64
	var err error
	yes := func(done bool) {
		if done {
			extra = 1
		}
	}
	switch mode {
	case witness.LatchSet, witness.LatchRearm:
		way := latch.TrySetCount
		if mode == witness.LatchRearm {
			way = latch.Rearm
		}
		var done bool
		done, err = way(ctx, int(n))
		yes(done)
	case witness.LatchDown, witness.LatchDownAs:
		var tally countdown.Tally
		switch {
		case mode == witness.LatchDownAs:
			tally, err = latch.CountDownAs(ctx, fmt.Sprint(n))
		case n == 1:
			tally, err = latch.CountDown(ctx)
		default:
			tally, err = latch.CountDownN(ctx, int(n))
		}
		value = int64(tally.Remaining)
		yes(tally.Counted)
	case witness.LatchAwait, witness.LatchAwaitOpen, witness.LatchAwaitSet:
		err = latch.Await(ctx)
	case witness.LatchRemove:
		var existed bool
		existed, err = latch.Delete(ctx)
		yes(existed)
	case witness.LatchCount:
		var count int
		count, err = latch.Count(ctx)
		value = int64(count)
	case inspect:
		var state countdown.State
		state, err = latch.Inspect(ctx)
		value = int64(state.Count)
		if (state.Count > 0) != (state.Status == countdown.Shut) {
			w.violation("inspect", "latch %s is %v, with a count of %d", o.Key, state.Status, state.Count)
		}
	}
	result := w.resultOf(c, "latch "+o.Key, err, ofLatches...)
	if result == witness.Refused {
		switch {
		case errors.Is(err, countdown.ErrNotSet):
			extra = witness.LatchNotSet
		case errors.Is(err, latchkey.ErrInvalid):
			extra = witness.LatchInvalid
		}
	}
	r.Answered(result, value, extra)
}

// barrierOf returns the barrier of an object.
func (w *worker) barrierOf(c *client, o plan.Object) *barrier.Barrier {
	if made, known := c.handles.Load(o.Key); known {
		return made.(*barrier.Barrier)
	}
	options := []barrier.Option{barrier.WithLease(w.Lease())}
	if c.what == prefixed {
		options = append(options, barrier.WithoutMembership())
	}
	if o.Index%2 == 0 {
		options = append(options, barrier.WithAction(func(ctx context.Context) error {
			nap(ctx, time.Millisecond)
			return nil
		}))
	}
	made := latchkey.Must(barrier.New(c.Client, c.name(o), o.Capacity, options...))
	c.handles.Store(o.Key, made)
	return made
}

// useBarrier arrives at a barrier as one of its parties.
func (w *worker) useBarrier(stopping context.Context, rng *rand.Rand, o plan.Object) {
	c := w.any(rng)
	if c == nil {
		return
	}
	b := w.barrierOf(c, o)
	ctx, cancel := context.WithTimeout(stopping, w.Patience())
	defer cancel()
	switch rng.IntN(30) {
	case 0:
		cancel()
		ctx, cancel = context.WithTimeout(stopping, time.Duration(rng.IntN(5000))*time.Microsecond)
		defer cancel()
	case 1:
		_ = w.resultOf(c, "Join", b.Join(ctx), ofBarriers...)
	case 2:
		_ = w.resultOf(c, "Leave", b.Leave(ctx))
	}
	r := w.witness.Ask(witness.Arrival, o, 0, int64(o.Capacity), c.number)
	arrival, err := b.Await(ctx)
	result := w.resultOf(c, "barrier "+o.Key, err, ofBarriers...)
	r.Answered(result, arrival.Generation, int64(arrival.Index))
	if result == witness.Done {
		nap(stopping, time.Duration(rng.IntN(10_000))*time.Microsecond)
		return
	}
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded) && time.Now().UnixNano()-r.Asked > w.Patience().Nanoseconds() {
		w.violation("forgotten", "barrier %s waited for %v: %v", o.Key, w.Patience(), err)
	}
	nap(stopping, time.Duration(rng.IntN(10))*time.Millisecond)
	if broken, err := b.Broken(stopping); err == nil && broken {
		_ = w.resultOf(c, "Reset", b.Reset(ctx))
	}
}
