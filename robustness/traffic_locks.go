package robustness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

// lockOf returns a lock of an object in one of the ways in which it can be made, and whether its holds end by
// themselves.
func (w *worker) lockOf(rng *rand.Rand, c *client, o Object, reads bool) (l *latchkey.Lock, ends bool) {
	variant := rng.IntN(variants)
	return w.lockIn(c, o, variant, reads), endsByItself(variant)
}

// lockIn returns the lock of a client in one of the ways.
func (w *worker) lockIn(c *client, o Object, variant int, reads bool) *latchkey.Lock {
	variant = w.unlessShort(o, variant)
	key := fmt.Sprint(o.Key, variant)
	made, known := c.handles.Load(key)
	if !known {
		made = must1(w.newLock(c, o, variant))
		c.handles.Store(key, made)
	}
	both, halves := made.(*rwlock.Lock)
	switch {
	case halves && reads:
		return both.Read()
	case halves:
		return both.Write()
	}
	return made.(*latchkey.Lock)
}

// The variants whose holds end by themselves.
const (
	endsFixed = 1
	endsMost  = 2
)

// unlessShort is the variant, or one with a long lease: where a lease is short, all who wait ask as often.
func (w *worker) unlessShort(o Object, variant int) int {
	if o.Lone && w.Calm() && variant <= briefLease {
		return 0
	}
	return variant
}

// There are so many variants. Of locks, those from spins on are spin locks.
const (
	variants = 16
	spins    = 13
)

func endsByItself(variant int) bool { return variant == endsFixed || variant == endsMost }

const (
	fixed   = 400 * time.Millisecond
	brief   = 300 * time.Millisecond
	minimum = 10 * time.Millisecond
)

// briefLease is the variant with a lease that is shorter than the longest holds.
const briefLease = 3

// holdLong holds something for longer than its lease, so that it has to be renewed.
func (w *worker) holdLong(stopping context.Context, rng *rand.Rand) {
	nap(stopping, time.Duration(rng.IntN(1500))*time.Millisecond)
	o := w.Objects[rng.IntN(len(w.Objects))]
	c := w.any(rng)
	if c == nil || stopping.Err() != nil || !o.Exclusive() && !o.Permits() {
		return
	}
	long := func(ctx context.Context, r *Record, hold Holding) {
		for began := time.Now(); time.Since(began) < brief+brief/2 && ctx.Err() == nil; {
			nap(ctx, 10*time.Millisecond)
			r.Seen(hold)
		}
	}
	reads := o.Family == Halves && rng.IntN(2) == 0
	mode := modeOf(reads)
	if o.Permits() {
		mode = Part
	}
	r := w.witness.Ask(Section, o, mode, 1, c.number)
	ctx, patient, cancel := w.waiting(context.Background(), rng, r)
	defer cancel()
	if o.Permits() {
		permits, err := w.permitsIn(c, o, briefLease).Acquire(ctx, 1)
		if err != nil {
			w.failed(c, []*Record{r}, o.Key, patient, context.Background(), err, ofPermits...)
			return
		}
		r.Granted(permits, permits.Token(), permits.Sequence())
		long(permits.Context(), r, permits)
		r.Over(w.endOf(c, "Release of "+o.Key, w.unlock(rng, permits.Release)))
		return
	}
	hold, err := w.lockIn(c, o, briefLease, reads).Lock(ctx)
	if err != nil {
		w.failed(c, []*Record{r}, o.Key, patient, context.Background(), err)
		return
	}
	r.Granted(hold, hold.Token(), hold.Sequence())
	long(hold.Context(), r, hold)
	r.Over(w.endOf(c, "Unlock of "+o.Key, w.unlock(rng, hold.Unlock)))
}

func (w *worker) newLock(c *client, o Object, variant int) (any, error) {
	name := c.name(o)
	switch o.Family {
	case Red:
		clients := append([]*latchkey.Client{c.Client}, c.others...)
		options := [][]redlock.Option{
			endsFixed: {redlock.WithFixedLease(fixed)}, endsMost: {redlock.WithMaxHold(fixed)},
			briefLease: {redlock.WithLease(brief)}, 4: {redlock.WithoutReentry()}, 15: nil,
		}
		return redlock.New(clients, name, options[variant]...)
	case Halves:
		options := [][]rwlock.Option{
			endsFixed: {rwlock.WithFixedLease(fixed)}, endsMost: {rwlock.WithMaxHold(fixed)},
			briefLease: {rwlock.WithLease(brief)}, 4: {rwlock.WithMinHold(minimum)}, 5: {rwlock.WithBudget(0, 0)},
			6: {rwlock.WithBudget(4, time.Millisecond)}, 15: nil,
		}
		return rwlock.New(c.Client, name, options[variant]...)
	case Fair:
		options := [][]fairlock.Option{
			endsFixed: {fairlock.WithFixedLease(fixed)}, endsMost: {fairlock.WithMaxHold(fixed)},
			briefLease: {fairlock.WithLease(brief)}, 4: {fairlock.WithMinHold(minimum)}, 15: nil,
		}
		return fairlock.New(c.Client, name, options[variant]...)
	}
	if c.what == mute || variant >= spins {
		options := [][]spinlock.Option{
			endsFixed: {spinlock.WithFixedLease(fixed)}, endsMost: {spinlock.WithMaxHold(fixed)},
			briefLease: {spinlock.WithLease(brief)}, 4: {spinlock.WithBackoff(time.Millisecond, 8*time.Millisecond)}, 15: nil,
		}
		return spinlock.New(c.Client, name, options[variant]...)
	}
	if variant >= 10 {
		return fairlock.New(c.Client, name)
	}
	options := [][]rlock.Option{
		endsFixed: {rlock.WithFixedLease(fixed)}, endsMost: {rlock.WithMaxHold(fixed)},
		briefLease: {rlock.WithLease(brief)}, 4: {rlock.WithMinHold(minimum)}, 5: {rlock.WithBudget(0, 0)},
		6: {rlock.WithBudget(4, time.Millisecond)}, 7: {rlock.WithLinger(50 * time.Millisecond)}, 15: nil,
	}
	return rlock.New(c.Client, name, options[variant]...)
}

func modeOf(reads bool) int64 {
	if reads {
		return Together
	}
	return Alone
}

// useLock takes one lock in one of the five ways, and gives it back.
func (w *worker) useLock(parent context.Context, rng *rand.Rand, c *client, o Object, s stack) {
	if o.Family == Locks && rng.IntN(8) == 0 {
		if silent := w.clients[mute].Load(); silent != nil {
			c = silent
		}
	}
	reads := o.Family == Halves && rng.IntN(2) == 0
	variant := rng.IntN(variants)
	l, ends := w.lockIn(c, o, variant, reads), endsByItself(variant)
	r := w.witness.Ask(Section, o, modeOf(reads), 1, c.number)
	if ends {
		r.Ends = 1
	}
	if o.Family == Locks && (c.what == mute || variant >= spins) {
		r.Queued = -1 // it polls
	}
	ctx, patient, cancel := w.waiting(parent, rng, r)
	defer cancel()
	what := fmt.Sprintf("%s on client %d (%d)", o.Key, c.number, c.what)
	var hold *latchkey.Hold
	var err error
	switch way := rng.IntN(10); {
	case way < 4:
		hold, err = l.Lock(ctx)
	case way == 4:
		hold, err = l.TryLock(ctx)
	case way == 5:
		hold, err = l.TryLockFor(ctx, time.Duration(1+rng.IntN(30))*time.Millisecond)
	default:
		w.doLock(parent, ctx, rng, c, o, l, r, s, way == 9, patient, reads)
		return
	}
	if err != nil {
		w.failed(c, []*Record{r}, what, patient, parent, err)
		return
	}
	r.Granted(hold, hold.Token(), hold.Sequence())
	me := held{object: o, client: c, shared: reads, token: hold.Token(), ctx: hold.Context(), alone: true}
	w.inside(hold.Context(), rng, s.with(me), func() { r.Seen(hold) })
	r.Seen(hold)
	if o.Family == Halves && !reads && rng.IntN(4) == 0 {
		r = w.downgrade(rng, c, o, hold, r)
	}
	r.Over(w.endOf(c, "Unlock of "+o.Key, w.unlock(rng, hold.Unlock)))
}

// doLock is for Do and TryDo.
func (w *worker) doLock(
	parent, ctx context.Context, rng *rand.Rand, c *client, o Object, l *latchkey.Lock, r *Record, s stack, try, patient, reads bool,
) {
	way, ran := l.Do, false
	if try {
		way = l.TryDo
	}
	own := errors.New("own")
	fails := rng.IntN(8) == 0
	err := way(ctx, func(ctx context.Context, hold *latchkey.Hold) error {
		ran = true
		r.Granted(hold, hold.Token(), hold.Sequence())
		me := held{object: o, client: c, shared: reads, token: hold.Token(), ctx: ctx, alone: true}
		w.inside(ctx, rng, s.with(me), func() { r.Seen(hold) })
		r.Seen(hold)
		if fails {
			return own
		}
		return nil
	})
	switch {
	case !ran && !errors.Is(err, latchkey.ErrNotRun):
		w.violation("do", "%s: f never ran, and the error is %v", o.Key, err)
	case !ran:
		w.failed(c, []*Record{r}, o.Key, patient, parent, err)
	case errors.Is(err, latchkey.ErrNotRun):
		w.violation("do", "%s: f ran, and the error is %v", o.Key, err)
	case errors.Is(err, own), err == nil:
		r.Over(Untold) // it may go on in the background
		if w.Calm() {
			r.Over(Done)
		}
	default:
		r.Over(w.endOf(c, "Do of "+o.Key, err))
	}
}

// unlock gives back with a context that lasts, or one that has ended.
func (w *worker) unlock(rng *rand.Rand, release func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	if rng.IntN(10) == 0 {
		cancel()
	}
	return release(ctx)
}

// downgrade makes a write hold one that reads, and returns the record of that.
func (w *worker) downgrade(rng *rand.Rand, c *client, o Object, hold *latchkey.Hold, r *Record) *Record {
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	next := w.witness.Ask(Section, o, Together, 1, c.number)
	next.Ends = r.Ends
	r.Over(Done)
	if err := hold.Downgrade(ctx); err != nil {
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
	if !h.object.Exclusive() || h.object.Family == Red {
		return
	}
	reads := h.shared || h.object.Family == Halves && rng.IntN(2) == 0
	l, _ := w.lockOf(rng, h.client, h.object, reads)
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
		alone, _ := w.lockOf(rng, h.client, h.object, false)
		if hold, err := alone.TryLock(again.Context()); !errors.Is(err, rwlock.ErrUpgrade) && again.Held() {
			w.violation("upgrade", "%s: a reader writes: %v %v", h.object.Key, hold, err)
		}
	}
	_ = w.endOf(h.client, "Unlock of a re-entry of "+h.object.Key, again.Unlock(ctx))
}

// take takes an object away from whoever has it.
func (w *worker) take(rng *rand.Rand, o Object) {
	c := w.any(rng)
	if c == nil {
		return
	}
	l, _ := w.lockOf(rng, c, o, rng.IntN(2) == 0)
	r := w.witness.Ask(Taking, o, 0, 0, c.number)
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	_, err := l.ForceUnlock(ctx)
	r.Answered(w.resultOf(c, "ForceUnlock", err), 0, 0)
}

// inspect looks at an object. What it sees may be history, but it must make sense.
func (w *worker) inspect(rng *rand.Rand, o Object) {
	c := w.any(rng)
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	if o.Permits() {
		state, err := w.permitsOf(rng, c, o).Inspect(ctx)
		if w.resultOf(c, "Inspect", err, ofPermits...) == Done && len(w.Faults) == 0 && !o.Changes &&
			(state.Capacity != o.Capacity || state.Available < 0 || state.InUse > o.Capacity) {
			w.violation("inspect", "%s has %d permits: %+v", o.Key, o.Capacity, state)
		}
		return
	}
	l, _ := w.lockOf(rng, c, o, rng.IntN(2) == 0)
	state, err := l.Inspect(ctx)
	if w.resultOf(c, "Inspect", err) == Done && state.Remaining > 2*w.Lease() && !w.has("clock back") {
		w.violation("inspect", "%s has a lease of %v", o.Key, state.Remaining)
	}
}
