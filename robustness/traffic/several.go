package traffic

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// several is parts of a multi-lock, with their records.
type several struct {
	objects []plan.Object
	clients []*client
	reads   []bool
	records []*witness.Record
	locks   []*latchkey.Lock
}

// partsOf draws up to five of the objects, of one client as a rule, and of several now and then.
func (w *worker) partsOf(rng *rand.Rand, objects []plan.Object) (parts several) {
	c, mixed := w.any(rng), rng.IntN(3) == 0
	if c == nil {
		return parts
	}
	most := 1 + rng.IntN(min(5, len(objects)))
	halves := rng.IntN(4) == 0 // several halves of one client, which share no script
	for _, n := range rng.Perm(len(objects)) {
		o := objects[n]
		if len(parts.objects) == most || halves && o.Family != plan.Halves {
			continue
		}
		if mixed {
			if c = w.any(rng); c == nil {
				return several{}
			}
		}
		reads := o.Family == plan.Halves && rng.IntN(2) == 0
		l, ends := w.lockOf(rng, c, o, reads)
		r := w.witness.Ask(witness.Section, o, modeOf(reads), 1, c.number)
		r.Several = 1
		if ends {
			r.Ends = 1
		}
		parts.objects, parts.clients, parts.reads = append(parts.objects, o), append(parts.clients, c), append(parts.reads, reads)
		parts.records, parts.locks = append(parts.records, r), append(parts.locks, l)
	}
	return parts
}

// useSeveral takes several locks at once. Among them may be one that the goroutine has already.
func (w *worker) useSeveral(parent context.Context, rng *rand.Rand, objects []plan.Object, s stack) {
	parts := w.partsOf(rng, objects)
	if len(parts.locks) == 0 {
		return
	}
	given := parts.locks
	if n := len(s) - 1; n >= 0 && rng.IntN(3) == 0 && s[n].object.Exclusive() && s[n].object.Family != plan.Red {
		again := w.again(rng, s[n], s[n].shared)
		given = append([]*latchkey.Lock{again}, given...)
	}
	l, err := multilock.New(given...)
	if err != nil {
		w.violation("error", "multilock.New: %v", err)
		return
	}
	ctx, patient, cancel := w.waiting(parent, rng, parts.records...)
	defer cancel()
	ran := false
	work := func(ctx context.Context, hold *multilock.Hold) error {
		ran = true
		w.holdSeveral(ctx, rng, hold, parts, s)
		return nil
	}
	var hold *multilock.Hold
	switch way := rng.IntN(8); {
	case way < 5:
		hold, err = lockSomehow(ctx, rng, l)
	case way == 5:
		err = l.Do(ctx, work)
	case way == 6:
		err = l.TryDoFor(ctx, time.Duration(1+rng.IntN(30))*time.Millisecond, work)
	default:
		err = l.TryDo(ctx, work)
	}
	switch {
	case hold != nil:
		_ = work(hold.Context(), hold) // it returns nil
		err = w.unlock(rng, hold.Unlock)
		w.ended(strings.Join(l.Names(), "+"), hold.Err())
	case !ran:
		w.failed(nil, parts.records, strings.Join(l.Names(), "+"), patient && !w.anyClosing(parts), parent, w.unlessClosed(err))
		return
	}
	if errors.Is(err, latchkey.ErrNotRun) {
		w.violation("do", "several: f ran, and the error is %v", err)
	}
	result := w.endOf(nil, "Unlock of several", w.unlessClosed(err))
	for n, r := range parts.records {
		if result == witness.Lost && !parts.objects[n].Taken && len(parts.records) > 1 {
			r.Over(witness.Untold) // it may be another one that was lost
			continue
		}
		r.Over(result)
	}
}

func (w *worker) anyClosing(parts several) bool {
	for _, c := range parts.clients {
		if c.closing.Load() {
			return true
		}
	}
	return false
}

// unlessClosed takes an error of a client that the worker closed for a context that has ended.
func (w *worker) unlessClosed(err error) error {
	if errors.Is(err, latchkey.ErrClosed) && w.Closes {
		return context.Canceled
	}
	return err
}

func (w *worker) holdSeveral(ctx context.Context, rng *rand.Rand, hold *multilock.Hold, parts several, s stack) {
	tokens := hold.Tokens()
	if rng.IntN(8) == 0 {
		untilWanted(hold, time.Duration(rng.IntN(20))*time.Millisecond)
	}
	if names := hold.Names(); len(names) != len(tokens) {
		w.violation("tokens", "%v have %v", names, tokens)
	}
	see := func() {
		for _, r := range parts.records {
			if r.Begin != 0 {
				r.Seen(hold)
			}
		}
	}
	deepest := s
	for n, r := range parts.records {
		token := tokens[parts.clients[n].name(parts.objects[n])]
		if token == 0 {
			w.violation("tokens", "%s has none in %v", parts.objects[n].Key, tokens)
		}
		r.Granted(hold, token, 0)
		deepest = deepest.with(held{object: parts.objects[n], client: parts.clients[n], shared: parts.reads[n], token: token, ctx: ctx})
	}
	// What is taken inside stands behind all of them.
	last := 0
	for n := range deepest {
		if deepest[n].object.Index > deepest[last].object.Index {
			last = n
		}
	}
	deepest[last], deepest[len(deepest)-1] = deepest[len(deepest)-1], deepest[last]
	deepest[len(deepest)-1].ctx = ctx
	w.inside(ctx, rng, deepest, see)
	see()
	for _, r := range parts.records {
		r.Leaves()
	}
}
