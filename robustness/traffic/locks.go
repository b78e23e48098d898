package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

func modeOf(reads bool) int64 {
	if reads {
		return witness.Together
	}
	return witness.Alone
}

// useLock takes one lock in one of the six ways, and gives it back.
func (w *worker) useLock(parent context.Context, rng *rand.Rand, c *client, o plan.Object, s stack) {
	c = w.special(rng, o, c)
	reads := o.Family == plan.Halves && rng.IntN(2) == 0
	variant := rng.IntN(variants)
	l, ends := w.lockIn(c, o, variant, reads), endsByItself(variant)
	r := w.witness.Ask(witness.Section, o, modeOf(reads), 1, c.number)
	if ends {
		r.Ends = 1
	}
	if c.polls(o, variant) {
		r.Queued = -1
	}
	ctx, patient, cancel := w.waiting(parent, rng, r)
	defer cancel()
	what := fmt.Sprintf("%s on client %d (%d)", o.Key, c.number, c.what)
	ctx = latchkey.WithNote(ctx, o.Key)
	if rng.IntN(10) >= 6 {
		w.doLock(parent, ctx, rng, c, o, l, r, s, patient, reads)
		return
	}
	hold, err := lockSomehow(ctx, rng, l)
	if err != nil {
		w.failed(c, []*witness.Record{r}, what, patient, parent, err)
		return
	}
	r.Granted(hold, hold.Token(), hold.Sequence())
	me := held{object: o, client: c, shared: reads, token: hold.Token(), ctx: hold.Context(), alone: true}
	w.inside(hold.Context(), rng, s.with(me), func() { r.Seen(hold) })
	w.write(rng, c, o, hold)
	if rng.IntN(8) == 0 {
		untilWanted(hold, time.Duration(rng.IntN(20))*time.Millisecond)
	}
	r.Seen(hold)
	if rng.IntN(leaves) == 0 && !reads && o.Family != plan.Red { // others of the process may read with it
		next, other, record, goesOn := leave(w, rng, c, o, hold, r, func(c *client, ctx context.Context, text string) (*latchkey.Hold, error) {
			return w.lockIn(c, o, variant, reads).Attach(ctx, text)
		})
		if !goesOn {
			return
		}
		hold, c, r = next, other, record
		r.Seen(hold)
	}
	if o.Family == plan.Halves && !reads && rng.IntN(4) == 0 {
		r = w.downgrade(rng, c, o, hold, r)
	}
	r.Over(w.endOf(c, "Unlock of "+o.Key, w.unlock(rng, hold.Unlock, r)))
	w.named(c, o, hold.Name())
	w.ended(o.Key, hold.Err())
}

// untilWanted holds on until somebody else wants the lock, the hold ends, or the time is over.
func untilWanted(hold interface {
	Wanted() <-chan struct{}
	Context() context.Context
}, most time.Duration,
) {
	over := time.NewTimer(most)
	defer over.Stop()
	select {
	case <-hold.Wanted():
	case <-hold.Context().Done():
	case <-over.C:
	}
}

// doLock is for Do, TryDo and TryDoFor.
func (w *worker) doLock(
	parent, ctx context.Context, rng *rand.Rand, c *client, o plan.Object, l *latchkey.Lock, r *witness.Record, s stack, patient, reads bool,
) {
	do, ran := way(l.Do), false
	switch rng.IntN(8) {
	case 0, 1:
		do = l.TryDo
	case 2:
		d := time.Duration(1+rng.IntN(30)) * time.Millisecond
		do = func(ctx context.Context, f func(context.Context, *latchkey.Hold) error) error {
			return l.TryDoFor(ctx, d, f)
		}
	case 3:
		do = w.doNamed(rng, c, o, r, do)
	}
	own := errors.New("own")
	fails := rng.IntN(8) == 0
	err := do(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		ran = true
		r.Granted(hold, hold.Token(), hold.Sequence())
		me := held{object: o, client: c, shared: reads, token: hold.Token(), ctx: ctx, alone: true}
		w.inside(ctx, rng, s.with(me), func() { r.Seen(hold) })
		r.Seen(hold)
		r.Leaves()
		if fails {
			return own
		}
		return nil
	})
	switch {
	case !ran && !errors.Is(err, latchkey.ErrNotRun):
		w.violation("do", "%s: f never ran, and the error is %v", o.Key, err)
	case !ran:
		w.failed(c, []*witness.Record{r}, o.Key, patient, parent, err)
	case errors.Is(err, latchkey.ErrNotRun):
		w.violation("do", "%s: f ran, and the error is %v", o.Key, err)
	case errors.Is(err, own), err == nil:
		r.Over(witness.Untold) // it may go on in the background
		if w.Calm() {
			r.Over(witness.Done)
		}
	default:
		r.Over(w.endOf(c, "Do of "+o.Key, err))
	}
}

// doNamed is Do of a lock that is not kept, or another way where that is not what the object is for.
func (w *worker) doNamed(rng *rand.Rand, c *client, o plan.Object, r *witness.Record, otherwise way) way {
	type done func(context.Context, *latchkey.Client, string, func(context.Context, *latchkey.Hold) error, ...latchkey.LockOption) error
	do := done(fairlock.Do)
	switch {
	case o.Mixed() && c.what == mute, o.Mixed() && rng.IntN(3) == 0:
		do, r.Queued = spinlock.Do, -1
	case o.Mixed() && rng.IntN(2) == 0:
		do = rlock.Do
	case !o.Mixed() && o.Family != plan.Fair:
		return otherwise
	}
	return func(ctx context.Context, f func(context.Context, *latchkey.Hold) error) error {
		return do(ctx, c.Client, c.name(o), f)
	}
}

// way is how a function is run under a lock.
type way func(ctx context.Context, f func(context.Context, *latchkey.Hold) error) error

// unlock gives back with a context that lasts, or one that has ended.
func (w *worker) unlock(rng *rand.Rand, release func(context.Context) error, records ...*witness.Record) error {
	for _, r := range records {
		r.Leaves()
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	if rng.IntN(10) == 0 {
		cancel()
	}
	return release(ctx)
}

// downgrade makes a write hold one that reads, and returns the record of that.
func (w *worker) downgrade(rng *rand.Rand, c *client, o plan.Object, hold *latchkey.Hold, r *witness.Record) *witness.Record {
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	next := w.witness.Ask(witness.Section, o, witness.Together, 1, c.number)
	next.Ends, next.Queued = r.Ends, -1 // it holds already, so it passes waiters
	r.Over(witness.Done)
	if err := rwlock.Downgrade(ctx, hold); err != nil {
		next.Over(w.endOf(c, "Downgrade of "+o.Key, err))
		return next
	}
	next.Granted(hold, hold.Token(), 0)
	nap(hold.Context(), time.Duration(rng.IntN(1000))*time.Microsecond)
	next.Seen(hold)
	return next
}

// reenter takes again what the goroutine holds.
func (w *worker) reenter(rng *rand.Rand, s stack) {
	h := s[rng.IntN(len(s))]
	last := s[len(s)-1]
	if !h.object.Exclusive() || h.object.Family == plan.Red {
		return
	}
	reads := h.shared || h.object.Family == plan.Halves && rng.IntN(2) == 0
	l := w.again(rng, h, reads)
	ctx, cancel := context.WithTimeout(last.ctx, w.Patience())
	defer cancel()
	var again *latchkey.Hold
	var err error
	if rng.IntN(2) == 0 {
		again, err = l.Lock(ctx)
	} else {
		again, err = l.TryLock(ctx)
	}
	if err != nil {
		if last.ctx.Err() == nil && !h.client.closing.Load() {
			w.violation("re-entry", "%s: %v", h.object.Key, err)
		}
		return
	}
	if again.Token() != h.token && last.ctx.Err() == nil {
		w.violation("re-entry", "%s has token %d, and was held with %d", h.object.Key, again.Token(), h.token)
	}
	if h.shared && rng.IntN(4) == 0 {
		alone := w.again(rng, h, false)
		//latchkeyvet:ignore it must be refused; when it is not, the run has failed
		if hold, err := alone.TryLock(again.Context()); !errors.Is(err, rwlock.ErrUpgrade) && again.Held() && (err == nil || ctx.Err() == nil) {
			w.violation("upgrade", "%s: a reader writes: %v %v", h.object.Key, hold, err)
		}
	}
	if rng.IntN(4) == 0 {
		//latchkeyvet:ignore it must be refused; when it is not, the run has failed
		_, err := w.lockIn(h.client, h.object, noReentry, reads).TryLock(again.Context())
		if !errors.Is(err, latchkey.ErrReentered) && again.Held() && (err == nil || ctx.Err() == nil) && !h.client.closing.Load() {
			w.violation("re-entry", "%s is re-entered without re-entry: %v", h.object.Key, err)
		}
	}
	_ = w.endOf(h.client, "Unlock of a re-entry of "+h.object.Key, again.Unlock(ctx))
}
