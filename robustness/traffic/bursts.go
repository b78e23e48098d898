package traffic

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// section is a hold of a lock, or permits.
type section interface {
	witness.Holding
	Context() context.Context
	Token() int64
	Sequence() int64
}

// taker takes a lock or a permit, and returns what gives it back. try: it does not wait.
type taker func(ctx context.Context, try bool) (s section, release func(context.Context) error, err error)

// takerOf returns that of an object in one of the ways in which it can be made.
func (w *worker) takerOf(c *client, o plan.Object, variant int, reads bool) taker {
	if o.Permits() {
		sem := w.permitsIn(c, o, variant%permitVariants)
		return func(ctx context.Context, try bool) (section, func(context.Context) error, error) {
			way := sem.Acquire
			if try {
				way = sem.TryAcquire
			}
			permits, err := way(ctx, 1)
			if err != nil {
				return nil, nil, err
			}
			return permits, permits.Release, nil
		}
	}
	l := w.lockIn(c, o, variant, reads)
	return func(ctx context.Context, try bool) (section, func(context.Context) error, error) {
		way := l.Lock
		if try {
			way = l.TryLock
		}
		hold, err := way(ctx)
		if err != nil {
			return nil, nil, err
		}
		return hold, hold.Unlock, nil
	}
}

// askFor returns the record of an attempt at one lock or permit.
func (w *worker) askFor(c *client, o plan.Object, reads bool) *witness.Record {
	mode := modeOf(reads)
	if o.Permits() {
		mode = witness.Part
	}
	return w.witness.Ask(witness.Section, o, mode, 1, c.number)
}

// burst has some goroutines take the same thing of one client again and again for a moment, with nearly
// nothing between: so it is handed on inside of the process, and between processes that do the same.
func (w *worker) burst(stopping context.Context, rng *rand.Rand) {
	o := w.busy[rng.IntN(len(w.busy))]
	c := w.special(rng, o, w.any(rng))
	if c == nil {
		return
	}
	until := time.Now().Add(time.Duration(10+rng.IntN(150)) * time.Millisecond)
	variant := rng.IntN(variants)
	var all sync.WaitGroup
	for range 1 + rng.IntN(4) {
		own := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
		all.Go(func() {
			for time.Now().Before(until) && stopping.Err() == nil && !c.closing.Load() && !w.witness.Full() {
				if o.Family == plan.Counting {
					w.useCounting(context.Background(), own, c, o)
				} else {
					w.tiny(own, c, o, variant)
				}
			}
		})
	}
	all.Wait()
	if rng.IntN(3) == 0 { // so that others are seen without bursts
		nap(stopping, time.Duration(rng.IntN(30))*time.Millisecond)
	}
}

// tiny takes something, and gives it back at once.
func (w *worker) tiny(rng *rand.Rand, c *client, o plan.Object, variant int) {
	reads := o.Family == plan.Halves && rng.IntN(4) > 0
	r := w.askFor(c, o, reads)
	if o.Exclusive() && endsByItself(variant) {
		r.Ends = 1
	}
	if c.polls(o, variant) {
		r.Queued = -1
	}
	ctx, patient, cancel := w.waitingMostly(context.Background(), rng, o, r)
	defer cancel()
	s, release, err := w.takerOf(c, o, variant, reads)(ctx, rng.IntN(16) == 0)
	if err != nil {
		w.failed(c, []*witness.Record{r}, o.Key, patient, context.Background(), err, ofPermits...)
		return
	}
	r.Granted(s, s.Token(), s.Sequence())
	if rng.IntN(64) == 0 {
		nap(s.Context(), time.Duration(rng.IntN(500))*time.Microsecond)
	}
	r.Seen(s)
	if hold, ok := s.(*latchkey.Hold); ok {
		w.write(rng, c, o, hold)
	}
	r.Over(w.endOf(c, "end of "+o.Key, w.unlock(rng, release, r)))
}

// holdLong holds something for longer than its lease, so that it has to be renewed.
func (w *worker) holdLong(stopping context.Context, rng *rand.Rand) {
	nap(stopping, time.Duration(rng.IntN(1500))*time.Millisecond)
	may := slices.DeleteFunc(slices.Clone(w.Objects), func(o plan.Object) bool { return o.Quiet || !o.Exclusive() && !o.Permits() })
	o := may[rng.IntN(len(may))]
	c := w.any(rng)
	if c == nil || stopping.Err() != nil {
		return
	}
	reads := o.Family == plan.Halves && rng.IntN(2) == 0
	r := w.askFor(c, o, reads)
	ctx, patient, cancel := w.waiting(context.Background(), rng, r)
	defer cancel()
	s, release, err := w.takerOf(c, o, briefLease, reads)(ctx, false)
	if err != nil {
		w.failed(c, []*witness.Record{r}, o.Key, patient, context.Background(), err, ofPermits...)
		return
	}
	r.Granted(s, s.Token(), s.Sequence())
	for began := time.Now(); time.Since(began) < brief+brief/2 && s.Context().Err() == nil; {
		nap(s.Context(), 10*time.Millisecond)
		r.Seen(s)
	}
	r.Over(w.endOf(c, "end of "+o.Key, w.unlock(rng, release, r)))
}

// busyOf returns what bursts use: what is meant for them as a rule, and now and then what all else uses. They
// keep away from what shows lost wake-ups.
func busyOf(objects []plan.Object) (all []plan.Object) {
	for _, o := range objects {
		switch {
		case o.Busy:
			all = append(all, o, o, o, o)
		case (o.Exclusive() || o.Permits()) && !o.Lone && !o.Changes && !o.Quiet:
			all = append(all, o)
		}
	}
	return all
}
