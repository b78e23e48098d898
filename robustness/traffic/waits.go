package traffic

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// asking is the key under which a context has the records of what is asked for with it.
type asking struct{}

// waiting returns a context for a wait: patient as a rule, and otherwise one that ends at any time. The
// records learn when it is queued.
func (w *worker) waiting(parent context.Context, rng *rand.Rand, records ...*witness.Record) (ctx context.Context, patient bool, cancel func()) {
	switch {
	case w.Objects[records[0].Object].Changes && !w.Calm(): // once it is lost, nobody may set its capacity again
		ctx, cancel = context.WithTimeout(parent, plan.Settles)
	case rng.IntN(6) > 0:
		ctx, cancel = context.WithTimeout(parent, w.Patience())
		patient = true
	case rng.IntN(3) > 0:
		ctx, cancel = context.WithTimeout(parent, time.Duration(rng.IntN(20_000))*time.Microsecond)
	default:
		ctx, cancel = context.WithCancel(parent)
		timer := time.AfterFunc(time.Duration(rng.IntN(5000))*time.Microsecond, cancel)
		inner := cancel
		cancel = func() { timer.Stop(); inner() }
	}
	return context.WithValue(ctx, asking{}, records), patient, cancel
}

// waitingMostly is waiting with fewer contexts that end early.
func (w *worker) waitingMostly(parent context.Context, rng *rand.Rand, o plan.Object, r *witness.Record) (ctx context.Context, patient bool, cancel func()) {
	if o.Changes || rng.IntN(16) == 0 {
		return w.waiting(parent, rng, r)
	}
	ctx, cancel = context.WithTimeout(parent, w.Patience())
	return context.WithValue(ctx, asking{}, []*witness.Record{r}), true, cancel
}

// queued is the hook that is called when a waiter stands in the queue.
func queued(e latchkey.Event) {
	records, _ := e.Context.Value(asking{}).([]*witness.Record)
	if len(records) != 1 { // of a multi-lock several wait, one after the other
		return
	}
	if r := records[0]; r.Queued == 0 {
		r.Queued = time.Now().UnixNano()
	} else {
		r.Queued = -1 // it has lost its place
	}
}

// stack is what the goroutine holds already, the latest last.
type stack []held

type held struct {
	object plan.Object
	client *client
	shared bool // it reads
	token  int64
	ctx    context.Context
	alone  bool // by a context of its own, and not one of a multi-lock's
}

func (s stack) with(h ...held) stack { return append(slices.Clone(s), h...) }

// program does one thing with objects from a place on, and others inside of it.
func (w *worker) program(ctx context.Context, rng *rand.Rand, from int, s stack) {
	lockable := make([]plan.Object, 0, len(w.Objects))
	for _, o := range w.Objects[from:] {
		if !o.Quiet && (o.Exclusive() || o.Permits() || o.Family == plan.Counting) {
			lockable = append(lockable, o)
		}
	}
	c := w.any(rng)
	if len(lockable) == 0 || c == nil {
		return
	}
	o := lockable[rng.IntN(len(lockable))]
	locks := slices.DeleteFunc(slices.Clone(lockable), func(o plan.Object) bool { return !o.Exclusive() || o.Lone })
	switch {
	case o.Exclusive() && len(locks) > 0 && rng.IntN(3) == 0:
		w.useSeveral(ctx, rng, locks, s)
	case o.Exclusive():
		w.useLock(ctx, rng, c, o, s)
	case o.Permits():
		w.usePermits(ctx, rng, c, o, s)
	default:
		w.useCounting(ctx, rng, c, o)
	}
}

// inside is what happens while something is held: see is called now and then.
func (w *worker) inside(ctx context.Context, rng *rand.Rand, s stack, see func()) {
	last := s[len(s)-1]
	switch n := rng.IntN(40); {
	case n < 10: // nothing
	case n < 20:
		nap(ctx, time.Duration(rng.IntN(1000))*time.Microsecond)
	case n < 28 && len(s) < 4:
		w.program(ctx, rng, last.object.Index+1, s)
	case n < 34:
		w.reenter(rng, s)
	case n < 36:
		nap(ctx, time.Duration(rng.IntN(20))*time.Millisecond)
	case n == 36 && rng.IntN(4) == 0: // it is renewed meanwhile
		for range 1 + rng.IntN(10) {
			nap(ctx, 40*time.Millisecond)
			see()
		}
	case n == 37:
		limited, cancel := context.WithTimeout(ctx, 300*time.Millisecond) // what it publishes may be lost
		_ = w.resultOf(last.client, "Check", last.client.Check(limited))
		cancel()
	}
}

// lockable is a lock, or a multi-lock.
type lockable[H any] interface {
	Lock(ctx context.Context) (H, error)
	TryLock(ctx context.Context) (H, error)
	TryLockFor(ctx context.Context, wait time.Duration) (H, error)
}

// lockSomehow locks in one of the ways that return a hold.
func lockSomehow[H any](ctx context.Context, rng *rand.Rand, l lockable[H]) (H, error) {
	switch rng.IntN(6) {
	case 0:
		return l.TryLock(ctx)
	case 1:
		return l.TryLockFor(ctx, time.Duration(1+rng.IntN(30))*time.Millisecond)
	default:
		return l.Lock(ctx)
	}
}

// nap sleeps for a while, or until the context ends.
func nap(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// failed writes down that an attempt came to nothing.
func (w *worker) failed(c *client, records []*witness.Record, what string, patient bool, parent context.Context, err error, also ...error) {
	result := w.resultOf(c, what, err, also...)
	for _, r := range records {
		r.Over(result)
	}
	if patient && errors.Is(err, context.DeadlineExceeded) && parent.Err() == nil {
		w.violation("forgotten", "%s waited for %v: %v: %v", what, w.Patience(), err, records[0])
	}
}

// endOf says how a section has ended, by what the call returned that gave it back.
func (w *worker) endOf(c *client, what string, err error) int64 {
	switch result := w.resultOf(c, what, err, latchkey.ErrNotHeld); result {
	case witness.Done, witness.Lost:
		return result
	default:
		return witness.Untold
	}
}
