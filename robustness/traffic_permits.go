package robustness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/semaphore"
)

// There are so many variants of semaphores.
const permitVariants = 6

// permitsOf returns a semaphore of an object in one of the ways in which it can be made.
func (w *worker) permitsOf(rng *rand.Rand, c *client, o Object) *semaphore.Semaphore {
	return w.permitsIn(c, o, rng.IntN(permitVariants))
}

// permitsIn returns the semaphore of a client in one of the ways.
func (w *worker) permitsIn(c *client, o Object, variant int) *semaphore.Semaphore {
	variant = w.unlessShort(o, variant)
	key := fmt.Sprint(o.Key, variant)
	if made, known := c.handles.Load(key); known {
		return made.(*semaphore.Semaphore)
	}
	options := [][]semaphore.Option{briefLease: {semaphore.WithLease(brief)}, 5: nil}[variant]
	if o.Changes {
		options = append(options, semaphore.WithWaitForInit())
	} else {
		options = append(options, semaphore.WithCapacity(o.Capacity))
	}
	switch {
	case o.Family == Queued:
		options = append(options, semaphore.WithoutLocalHandOff())
	case variant == 2:
		options = append(options, semaphore.WithBudget(16, 5*time.Millisecond))
	case variant == 1:
		options = append(options, semaphore.WithOvertaking())
	case variant == 4:
		options = append(options, semaphore.WithWaitForCapacity())
	}
	made := must1(semaphore.New(c.Client, c.name(o), options...))
	c.handles.Store(key, made)
	return made
}

// usePermits acquires permits in one of the ways, and gives them back at once, or in parts.
func (w *worker) usePermits(parent context.Context, rng *rand.Rand, c *client, o Object, s stack) {
	sem := w.permitsOf(rng, c, o)
	n := 1 + rng.IntN(o.Capacity)
	if rng.IntN(2) == 0 {
		n = 1
	}
	r := w.witness.Ask(Section, o, Part, int64(n), c.number)
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
		w.doPermits(parent, ctx, rng, c, o, sem, n, r, s, patient)
		return
	}
	if err != nil {
		w.failed(c, []*Record{r}, o.Key, patient, parent, err, ofPermits...)
		return
	}
	r.N = int64(permits.Count())
	r.Granted(permits, permits.Token(), permits.Sequence())
	me := held{object: o, client: c, token: permits.Token(), ctx: permits.Context()}
	w.inside(permits.Context(), rng, s.with(me), func() { r.Seen(permits) })
	r.Seen(permits)
	for permits.Count() > 1 && rng.IntN(2) == 0 {
		r = w.releaseSome(rng, c, o, permits, r)
	}
	r.Over(w.endOf(c, "Release of "+o.Key, w.unlock(rng, permits.Release, r)))
}

// releaseSome gives back a part, and returns the record of the rest.
func (w *worker) releaseSome(rng *rand.Rand, c *client, o Object, permits *semaphore.Permits, r *Record) *Record {
	some := 1 + rng.IntN(permits.Count()-1)
	next := w.witness.Ask(Section, o, Part, int64(permits.Count()-some), c.number)
	next.Extra = 1 // it is no grant of its own
	result := w.endOf(c, "ReleaseN of "+o.Key, w.unlock(rng, func(ctx context.Context) error { return permits.ReleaseN(ctx, some) }, r))
	r.Over(result)
	if result == Done {
		next.Granted(permits, r.Token, 0)
	}
	return next
}

func (w *worker) doPermits(
	parent, ctx context.Context, rng *rand.Rand, c *client, o Object, sem *semaphore.Semaphore, n int, r *Record, s stack, patient bool,
) {
	ran := false
	err := sem.Do(ctx, n, func(ctx context.Context, permits *semaphore.Permits) error {
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
		w.failed(c, []*Record{r}, o.Key, patient, parent, err, ofPermits...)
	case err == nil && !w.Calm():
		r.Over(Untold)
	default:
		r.Over(w.endOf(c, "Do of "+o.Key, err))
	}
}

// change sets another capacity. Requests are for so many permits at most that one of them is always enough.
func (w *worker) change(rng *rand.Rand, o Object) {
	c := w.any(rng)
	if c == nil {
		return
	}
	sem := w.permitsOf(rng, c, o)
	n := o.Capacity + rng.IntN(3)
	r := w.witness.Ask(Setting, o, 0, int64(n), c.number)
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	r.Answered(w.resultOf(c, "SetPermits", sem.SetPermits(ctx, n)), 0, 0)
}

// The commands of plain permits, as modes of records.
const (
	take int64 = iota
	put
	look
	drain
)

// useCounting takes plain permits and gives them back, or looks how many are free.
func (w *worker) useCounting(parent context.Context, rng *rand.Rand, c *client, o Object) {
	key := o.Key
	made, known := c.handles.Load(key)
	if !known {
		made = must1(semaphore.NewCounting(c.Client, c.name(o), semaphore.WithCapacity(o.Capacity)))
		c.handles.Store(key, made)
	}
	sem := made.(*semaphore.Counting)
	n := 1 + rng.IntN(o.Capacity)
	if rng.IntN(8) == 0 {
		r := w.witness.Ask(Command, o, look, 0, c.number)
		free, err := sem.Available(context.WithoutCancel(parent))
		r.Answered(w.resultOf(c, "Available", err), int64(free), 0)
		return
	}
	mode := take
	if rng.IntN(12) == 0 {
		mode = drain
	}
	r := w.witness.Ask(Command, o, mode, int64(n), c.number)
	ctx, patient, cancel := w.waiting(parent, rng, r)
	if o.Exact || mode == drain || !w.Calm() { // what is not answered may be done; and permits of those that are killed do not come back
		cancel()
		limit := 200 * time.Millisecond
		if patient = w.Calm(); patient {
			limit = w.Patience()
		}
		ctx, cancel = context.WithTimeout(context.WithoutCancel(parent), limit)
	}
	defer cancel()
	var err error
	switch way := rng.IntN(6); {
	case mode == drain:
		n, err = sem.Drain(ctx)
		r.N = int64(n)
	case way < 4:
		err = sem.Acquire(ctx, n)
	case way == 4:
		err = sem.TryAcquire(ctx, n)
	default:
		err = sem.TryAcquireFor(ctx, n, time.Duration(1+rng.IntN(30))*time.Millisecond)
	}
	result := w.resultOf(c, o.Key, err)
	r.Answered(result, 0, 0)
	if result != Done {
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
		r := w.witness.Ask(Command, o, put, int64(some), c.number)
		err := w.unlock(rng, func(ctx context.Context) error { return sem.Release(ctx, some) })
		r.Answered(w.resultOf(c, "Release of "+o.Key, err), 0, 0)
		n -= some
	}
}
