package robustness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// leftovers looks, when all workers have ended, whether anything of them holds or blocks anything, and
// whether all that is in Redis expires.
func (s *scene) leftovers(h *history) (violations []Violation) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var clients []*latchkey.Client
	addresses := [][]string{s.crew.order.Direct}
	if s.plan.Topology == Three {
		addresses = slices.Collect(slices.Chunk(addresses[0], 1))
	}
	for _, some := range addresses {
		c, err := latchkey.New(s.plan.option(s.crew.words, some...))
		if err != nil {
			return []Violation{{"left behind", fmt.Sprintf("no client afterwards: %v", err)}}
		}
		defer c.Close()
		clients = append(clients, c)
	}
	began := time.Now().UnixNano()
	bound := asksAgain + h.bound()
	if h.Plan.Calm() {
		bound = h.bound()
	} else {
		for _, w := range h.excusable {
			bound = max(bound, time.Duration(w.End-began)+w.Excuses.Recovers+h.bound())
		}
	}
	for _, o := range s.plan.Objects {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, s.plan.Patience())
		err := free(limited, clients, o, h)
		cancel()
		if err != nil {
			violations = append(violations, Violation{"left behind", fmt.Sprintf("%s: %v", o.Key, err)})
		} else if d := time.Since(began); d > bound {
			violations = append(violations, Violation{"recovery", fmt.Sprintf("%s is free %v after all have ended", o.Key, d)})
		}
	}
	return append(violations, s.onlyExpiring(ctx)...)
}

// free takes the whole of an object, and gives it back.
func free(ctx context.Context, clients []*latchkey.Client, o Object, h *history) error {
	c := clients[0]
	take := func(l *latchkey.Lock, err error) error {
		if err != nil {
			return err
		}
		return l.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
	}
	switch {
	case o.Family == Red:
		return take(redlock.New(clients, o.Key))
	case o.Family == Halves:
		both, err := rwlock.New(c, o.Key)
		if err != nil {
			return err
		}
		return take(both.Write(), nil)
	case o.Exclusive():
		return take(rlock.New(c, o.Key))
	case o.Permits():
		return freePermits(ctx, c, o, h)
	}
	if o.Family == Counting && h.Plan.Calm() && !o.Changes {
		sem, err := semaphore.NewCounting(c, o.Key)
		if err != nil {
			return err
		}
		free, err := sem.Available(ctx)
		for ; err == nil && free != o.Capacity; free, err = sem.Available(ctx) { // what was cancelled comes back
			nap(ctx, 10*time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("of %d permits %d are free: %w", o.Capacity, free, err)
		}
	}
	return nil
}

// freePermits sees that all permits are there, no more and no less.
func freePermits(ctx context.Context, c *latchkey.Client, o Object, h *history) error {
	sem, err := semaphore.New(c, o.Key)
	if err != nil {
		return err
	}
	for {
		state, err := sem.Inspect(ctx)
		switch {
		case err != nil && (h.loses() || o.Taken && errors.Is(err, semaphore.ErrNotInitialized)):
			return nil // it was lost, and nobody has made it again
		case errors.Is(err, semaphore.ErrNotInitialized) && o.Changes && !h.wasSet(o):
			return nil // the episode ended before its capacity was set
		case err != nil:
			return err
		case state.InUse == 0 && state.Available == state.Capacity && (o.Changes || state.Capacity == o.Capacity):
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("of %d permits: %+v", o.Capacity, state)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// wasSet reports whether a capacity was asked for of an object.
func (h *history) wasSet(o Object) bool {
	return slices.ContainsFunc(h.entries, func(e entry) bool { return e.Kind == Setting && e.Object == int64(o.Index) })
}

// onlyExpiring looks for keys without a time to live. The number of permits has none, nor the count of a
// latch.
func (s *scene) onlyExpiring(ctx context.Context) (violations []Violation) {
	for _, c := range s.plain {
		if role, err := c.Do(ctx, c.B().Role().Build()).ToArray(); err == nil && len(role) > 0 {
			if name, _ := role[0].ToString(); name == "slave" { // its primary has the same
				continue
			}
		}
		all, err := keys(ctx, c)
		if err != nil {
			return []Violation{{"left behind", err.Error()}}
		}
		for name, ttl := range all {
			stays := strings.HasSuffix(name, data) || slices.ContainsFunc([]Family{Leased, Queued, Counting, Latch}, func(f Family) bool {
				return strings.Contains(name, "-"+string(f)) // each key has the name of its object in it
			})
			if ttl == -1 && !stays {
				violations = append(violations, Violation{"left behind", "a key without a time to live: " + name})
			}
		}
	}
	return violations
}
