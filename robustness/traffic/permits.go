package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
	"github.com/latchkey-go/latchkey/semaphore"
)

// There are so many variants of semaphores.
const (
	permitVariants = 7
	permitsEnd     = 6 // they are not renewed
)

// permitsOf returns a semaphore of an object in one of the ways in which it can be made.
func (w *worker) permitsOf(rng *rand.Rand, c *client, o plan.Object) *semaphore.Semaphore {
	return w.permitsIn(c, o, rng.IntN(permitVariants))
}

// permitsIn returns the semaphore of a client in one of the ways.
func (w *worker) permitsIn(c *client, o plan.Object, variant int) *semaphore.Semaphore {
	variant = w.unlessShort(o, variant)
	key := fmt.Sprint(o.Key, variant)
	if made, known := c.handles.Load(key); known {
		return made.(*semaphore.Semaphore)
	}
	made := latchkey.Must(semaphore.New(c.Client, c.name(o), permitOptions(o, variant)...))
	c.handles.Store(key, made)
	return made
}

// permitOptions are those of a way.
func permitOptions(o plan.Object, variant int) []semaphore.Option {
	options := [][]semaphore.Option{
		briefLease: {semaphore.WithLease(brief)}, permitsEnd: {semaphore.WithFixedLease(fixed)}, permitVariants: nil,
	}[variant]
	if o.Changes {
		options = append(options, semaphore.WithWaitForSet())
	} else {
		options = append(options, semaphore.WithCapacity(o.Capacity))
	}
	switch {
	case o.Family == plan.Queued:
		options = append(options, semaphore.WithoutLocalHandOff())
	case variant == 2:
		options = append(options, semaphore.WithBudget(16, 5*time.Millisecond))
	case variant == 1:
		options = append(options, semaphore.WithOvertaking())
	case variant == 4:
		options = append(options, semaphore.WithWaitForCapacity())
	}
	return options
}

// usePermits acquires permits in one of the ways, and gives them back at once, or in parts.
func (w *worker) usePermits(parent context.Context, rng *rand.Rand, c *client, o plan.Object, s stack) {
	variant := w.unlessShort(o, rng.IntN(permitVariants))
	sem := w.permitsIn(c, o, variant)
	n := 1 + rng.IntN(o.Capacity)
	if rng.IntN(2) == 0 {
		n = 1
	}
	r := w.witness.Ask(witness.Section, o, witness.Part, int64(n), c.number)
	if variant == permitsEnd {
		r.Ends = 1
	}
	ctx, patient, cancel := w.waiting(parent, rng, r)
	defer cancel()
	var permits *semaphore.Permits
	var err error
	switch way := rng.IntN(10); {
	case way < 5:
		permits, err = sem.Acquire(ctx, n)
	case way == 5:
		permits, err = sem.TryAcquire(ctx, n)
	case way == 6:
		permits, err = sem.TryAcquireFor(ctx, n, time.Duration(1+rng.IntN(30))*time.Millisecond)
	case way == 7:
		r.Queued = -1 // it may pass those who wait
		permits, err = sem.Drain(ctx)
	default:
		w.doPermits(parent, ctx, rng, c, o, variant, n, r, s, patient)
		return
	}
	if err != nil {
		w.failed(c, []*witness.Record{r}, o.Key, patient, parent, err, ofPermits...)
		return
	}
	w.named(c, o, permits.Name())
	r.N = int64(permits.Count())
	r.Granted(permits, permits.Token(), permits.Sequence())
	me := held{object: o, client: c, token: permits.Token(), ctx: permits.Context()}
	w.inside(permits.Context(), rng, s.with(me), func() { r.Seen(permits) })
	r.Seen(permits)
	if rng.IntN(leaves) == 0 {
		next, other, record, goesOn := leave(w, rng, c, o, permits, r, func(c *client, ctx context.Context, text string) (*semaphore.Permits, error) {
			return w.permitsIn(c, o, variant).Attach(ctx, text)
		})
		if !goesOn {
			return
		}
		permits, c, r = next, other, record
		r.Seen(permits)
	}
	for permits.Count() > 1 && rng.IntN(2) == 0 {
		r = w.releaseSome(rng, c, o, permits, r)
	}
	r.Over(w.endOf(c, "Release of "+o.Key, w.unlock(rng, permits.Release, r)))
	w.ended(o.Key, permits.Err())
}

// releaseSome gives back a part, and returns the record of the rest.
func (w *worker) releaseSome(rng *rand.Rand, c *client, o plan.Object, permits *semaphore.Permits, r *witness.Record) *witness.Record {
	some := 1 + rng.IntN(permits.Count()-1)
	next := w.witness.Ask(witness.Section, o, witness.Part, int64(permits.Count()-some), c.number)
	next.Extra = 1 // it is no grant of its own
	result := w.endOf(c, "ReleaseN of "+o.Key, w.unlock(rng, func(ctx context.Context) error { return permits.ReleaseN(ctx, some) }, r))
	r.Over(result)
	if result == witness.Done {
		next.Granted(permits, r.Token, 0)
	}
	return next
}

// doPermits is for Do, in its four forms.
func (w *worker) doPermits(
	parent, ctx context.Context, rng *rand.Rand, c *client, o plan.Object, variant, n int, r *witness.Record, s stack, patient bool,
) {
	ran, way := false, w.permitsIn(c, o, variant).Do
	switch rng.IntN(4) {
	case 2:
		way = w.permitsIn(c, o, variant).TryDo
	case 0:
		way = func(ctx context.Context, n int, f func(context.Context, *semaphore.Permits) error) error {
			return w.permitsIn(c, o, variant).TryDoFor(ctx, n, time.Duration(1+rng.IntN(30))*time.Millisecond, f)
		}
	case 1:
		way = func(ctx context.Context, n int, f func(context.Context, *semaphore.Permits) error) error {
			return semaphore.Do(ctx, c.Client, c.name(o), n, f, permitOptions(o, variant)...)
		}
	}
	err := way(ctx, n, func(ctx context.Context, permits *semaphore.Permits) error {
		ran = true
		r.Granted(permits, permits.Token(), permits.Sequence())
		w.inside(ctx, rng, s.with(held{object: o, client: c, token: permits.Token(), ctx: ctx}), func() { r.Seen(permits) })
		r.Seen(permits)
		r.Leaves()
		return nil
	})
	switch {
	case ran == errors.Is(err, latchkey.ErrNotRun) || !ran && err == nil:
		w.violation("do", "%s: ran is %v, and the error %v", o.Key, ran, err)
	case !ran:
		w.failed(c, []*witness.Record{r}, o.Key, patient, parent, err, ofPermits...)
	case err == nil && !w.Calm():
		r.Over(witness.Untold)
	default:
		r.Over(w.endOf(c, "Do of "+o.Key, err))
	}
}

// countingOf returns the plain permits of an object.
func (w *worker) countingOf(c *client, o plan.Object) *semaphore.Counting {
	made, known := c.handles.Load(o.Key)
	if !known {
		made = latchkey.Must(semaphore.NewCounting(c.Client, c.name(o), semaphore.WithCapacity(o.Capacity)))
		c.handles.Store(o.Key, made)
	}
	return made.(*semaphore.Counting)
}

// useCounting takes plain permits and gives them back, or looks how many are free.
func (w *worker) useCounting(parent context.Context, rng *rand.Rand, c *client, o plan.Object) {
	sem := w.countingOf(c, o)
	n := 1 + rng.IntN(o.Capacity)
	if rng.IntN(8) == 0 {
		r := w.witness.Ask(witness.Command, o, witness.PlainLook, 0, c.number)
		free, err := sem.Available(context.WithoutCancel(parent))
		r.Answered(w.resultOf(c, "Available", err, ofCounting(o)...), int64(free), 0)
		return
	}
	if rng.IntN(8) == 0 {
		w.doCounting(parent, rng, c, o, n)
		return
	}
	mode := witness.PlainTake
	if rng.IntN(12) == 0 {
		mode = witness.PlainDrain
	}
	r := w.witness.Ask(witness.Command, o, mode, int64(n), c.number)
	ctx, patient, cancel := w.waiting(parent, rng, r)
	if o.Exact || o.Changes || mode == witness.PlainDrain || !w.Calm() { // what is not answered may be done; and permits of those that are killed do not come back
		cancel()
		limit := 200 * time.Millisecond
		if patient = w.Calm() && !o.Changes; patient {
			limit = w.Patience()
		}
		ctx, cancel = context.WithTimeout(context.WithoutCancel(parent), limit)
	}
	defer cancel()
	var err error
	switch way := rng.IntN(6); {
	case mode == witness.PlainDrain:
		n, err = sem.Drain(ctx)
		r.N = int64(n)
	case way < 4 || o.Exact && way > 4: // whose time to wait ends may be granted permits then, and gives them back
		err = sem.Acquire(ctx, n)
	case way == 4:
		err = sem.TryAcquire(ctx, n)
	default:
		err = sem.TryAcquireFor(ctx, n, time.Duration(1+rng.IntN(30))*time.Millisecond)
	}
	result := w.resultOf(c, o.Key, err, ofCounting(o)...)
	r.Answered(result, 0, 0)
	if result != witness.Done {
		if patient && errors.Is(err, context.DeadlineExceeded) && parent.Err() == nil {
			w.violation("forgotten", "%s waited for %v: %v", o.Key, w.Patience(), err)
		}
		return
	}
	if n == 0 {
		return
	}
	nap(parent, time.Duration(rng.IntN(1000))*time.Microsecond)
	for n > 0 {
		some := 1 + rng.IntN(n)
		r := w.witness.Ask(witness.Command, o, witness.PlainPut, int64(some), c.number)
		err := w.unlock(rng, func(ctx context.Context) error { return sem.Release(ctx, some) })
		r.Answered(w.resultOf(c, "Release of "+o.Key, err, ofCounting(o)...), 0, 0)
		n -= some
	}
}

// doCounting takes plain permits for a function. A time to wait would give permits back that no record has.
func (w *worker) doCounting(parent context.Context, rng *rand.Rand, c *client, o plan.Object, n int) {
	sem := w.countingOf(c, o)
	limit := 200 * time.Millisecond
	if w.Calm() && !o.Changes {
		limit = w.Patience()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(parent), limit)
	defer cancel()
	do := sem.Do
	switch {
	case rng.IntN(2) == 0:
		do = sem.TryDo
	case !o.Exact:
		do = func(ctx context.Context, n int, f func(context.Context) error) error {
			return sem.TryDoFor(ctx, n, time.Duration(1+rng.IntN(30))*time.Millisecond, f)
		}
	}
	take := w.witness.Ask(witness.Command, o, witness.PlainTake, int64(n), c.number)
	var put *witness.Record
	err := do(ctx, n, func(context.Context) error {
		take.Answered(witness.Done, 0, 0)
		nap(parent, time.Duration(rng.IntN(1000))*time.Microsecond)
		put = w.witness.Ask(witness.Command, o, witness.PlainPut, int64(n), c.number)
		return nil
	})
	switch result := w.resultOf(c, "Do of "+o.Key, err, ofCounting(o)...); {
	case errors.Is(err, latchkey.ErrNotRun) == (put != nil):
		w.violation("do", "%s: its function ran is %v, and the error %v", o.Key, put != nil, err)
	case put == nil:
		take.Answered(result, 0, 0)
	case err == nil: // the release may go on in the background
		put.Answered(witness.Unknown, 0, 0)
	default:
		put.Answered(result, 0, 0)
	}
}
