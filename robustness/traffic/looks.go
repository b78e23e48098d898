package traffic

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/leader"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// inspect looks at an object. What it sees may be history, but it must make sense.
func (w *worker) inspect(rng *rand.Rand, o plan.Object) {
	c := w.any(rng)
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.Patience())
	defer cancel()
	switch {
	case o.Permits():
		w.inspectPermits(ctx, rng, c, o)
	case o.Exclusive():
		w.inspectLock(ctx, rng, c, o)
	case o.Family == plan.Barrier:
		w.inspectBarrier(ctx, rng, c, o)
	case o.Family == plan.Leads && rng.IntN(4) > 0:
		w.watchLeaders(ctx, rng, c, o)
	case o.Family == plan.Leads, o.Family == plan.Ticks:
		w.pauses(ctx, rng, c, o)
	case o.Family == plan.Counting:
		sem := w.countingOf(c, o)
		w.named(c, o, sem.Name())
		waiting, err := sem.Waiting(ctx)
		if w.resultOf(c, "Waiting", err) == witness.Done && waiting < 0 {
			w.violation("inspect", "%d wait for %s", waiting, o.Key)
		}
	}
}

// named is what something says that it is called.
func (w *worker) named(c *client, o plan.Object, name string) {
	if name != c.name(o) {
		w.violation("name", "%s is called %s", c.name(o), name)
	}
}

func (w *worker) inspectLock(ctx context.Context, rng *rand.Rand, c *client, o plan.Object) {
	l, _ := w.lockOf(rng, c, o, rng.IntN(2) == 0)
	w.named(c, o, l.Name())
	state, err := l.Inspect(ctx)
	if w.resultOf(c, "Inspect", err) == witness.Done && state.Holder.Remaining > 2*w.Lease() && !w.Has("clock back") {
		w.violation("inspect", "%s has a lease of %v", o.Key, state.Holder.Remaining)
	}
	if err == nil && o.Family != plan.Red {
		w.told(c, o, state)
	}
	if rng.IntN(8) == 0 {
		w.lookForDeadlocks(ctx, c)
	}
}

// lookForDeadlocks judges circles: what one waits for the next one holds.
func (w *worker) lookForDeadlocks(ctx context.Context, c *client) {
	circles, err := c.Deadlocks(ctx)
	if w.resultOf(c, "Deadlocks", err) != witness.Done {
		return
	}
	for _, circle := range circles {
		for i, b := range circle {
			if next := circle[(i+1)%len(circle)]; b.WaitsFor != next.Holds || b.Who.Since.After(time.Now().Add(time.Minute)) {
				w.violation("deadlock", "no circle: %v", circle.String())
			}
		}
	}
}

// told judges what the holder of a lock tells of itself: nothing yet, or what one of ours would. Who holds
// inside of something else may have the note of that.
func (w *worker) told(c *client, o plan.Object, state latchkey.State) {
	who := state.Holder.Identity
	switch {
	case state.Holder.Mine != (state.Holder.Owner != "" && who.Client == c.ID()):
		w.violation("told", "%s is held by %s, of client %s; mine: %t", o.Key, state.Holder.Owner, who.Client, state.Holder.Mine)
	case who.Label != "" && who.Label != labelled, who.Note != "" && !strings.HasPrefix(who.Note, plan.Prefix):
		w.violation("told", "%s is held by %+v", o.Key, who)
	case who.Note != "" && who.Since.IsZero():
		w.violation("told", "%s is held since no time: %+v", o.Key, who)
	}
}

func (w *worker) inspectPermits(ctx context.Context, rng *rand.Rand, c *client, o plan.Object) {
	sem := w.permitsOf(rng, c, o)
	w.named(c, o, sem.Name())
	steady := len(w.Faults) == 0 && !o.Changes && !o.Taken
	least, most := 0, o.Capacity
	var seen int
	var err error
	switch rng.IntN(4) {
	case 0:
		seen, err = sem.Available(ctx)
	case 1:
		seen, err = sem.InUse(ctx)
	case 2:
		least = o.Capacity
		seen, err = sem.Capacity(ctx)
	default:
		state, inspected := sem.Inspect(ctx)
		seen, err = state.Available, inspected
		if err == nil && steady && (state.Capacity != o.Capacity || state.InUse > o.Capacity) {
			w.violation("inspect", "%s has %d permits: %+v", o.Key, o.Capacity, state)
		}
	}
	if w.resultOf(c, "a look at "+o.Key, err, ofPermits...) == witness.Done && steady && (seen < least || seen > most) {
		w.violation("inspect", "of the %d permits of %s: %d", o.Capacity, o.Key, seen)
	}
}

func (w *worker) inspectBarrier(ctx context.Context, rng *rand.Rand, c *client, o plan.Object) {
	b := w.barrierOf(c, o)
	w.named(c, o, b.Name())
	if b.Parties() != o.Capacity {
		w.violation("inspect", "%s is for %d, and says %d", o.Key, o.Capacity, b.Parties())
	}
	waiting, err := b.Waiting(ctx)
	if rng.IntN(2) == 0 {
		state, inspected := b.Inspect(ctx)
		waiting, err = state.Waiting, inspected
	}
	if w.resultOf(c, "a look at "+o.Key, err, ofBarriers...) == witness.Done && (waiting < 0 || waiting > o.Capacity) {
		w.violation("inspect", "%d wait at %s, which is for %d", waiting, o.Key, o.Capacity)
	}
}

// watchLeaders looks who leads, once or for a while.
func (w *worker) watchLeaders(ctx context.Context, rng *rand.Rand, c *client, o plan.Object) {
	candidate := latchkey.Must(leader.New(c.Client, c.name(o)))
	w.named(c, o, candidate.Name())
	if rng.IntN(2) == 0 {
		_, err := candidate.Leader(ctx)
		_ = w.resultOf(c, "Leader of "+o.Key, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(500))*time.Millisecond)
	defer cancel()
	token, ended := int64(0), false
	for who, err := range candidate.Watch(ctx) {
		switch {
		case ended:
			w.violation("watch", "%s: something comes after the end: %+v, %v", o.Key, who, err)
		case err != nil:
			ended = true
			_ = w.resultOf(c, "Watch of "+o.Key, err)
		case who.Token != 0 && who.Token <= token && len(w.Faults) == 0:
			w.violation("watch", "%s: token %d after %d", o.Key, who.Token, token)
		case who.Token != 0:
			token = who.Token
		}
	}
	if !ended {
		w.violation("watch", "%s: it ends without an error", o.Key)
	}
}

// ended sees that something is not held that was given back.
func (w *worker) ended(what string, err error) {
	if !errors.Is(err, latchkey.ErrReleased) && !errors.Is(err, latchkey.ErrLost) && !errors.Is(err, latchkey.ErrClosed) {
		w.violation("hold", "%s is given back, and its error is %v", what, err)
	}
}
