package robustness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/robustness/faults"
	"github.com/latchkey-go/latchkey/robustness/judge"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// leftovers looks, when all workers have ended, whether anything of them holds or blocks anything, and
// whether all that is in Redis expires.
func leftovers(s *faults.Scene, h *judge.History) (violations []plan.Violation) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var clients []*latchkey.Client
	addresses := [][]string{s.Crew.Order.Direct}
	if h.Plan.Topology == plan.Three {
		addresses = slices.Collect(slices.Chunk(addresses[0], 1))
	}
	for _, some := range addresses {
		c, err := rueidisclient.New(faults.Option(h.Plan, s.Crew.Words, some...))
		if err != nil {
			return []plan.Violation{{Kind: "left behind", Text: fmt.Sprintf("no client afterwards: %v", err)}}
		}
		defer c.Close()
		clients = append(clients, c)
	}
	began := time.Now().UnixNano()
	bound := plan.AsksAgain + h.Bound()
	if h.Plan.Calm() {
		bound = h.Bound()
	} else {
		for _, w := range h.Excusable {
			bound = max(bound, time.Duration(w.End-began)+w.Excuses.Recovers+h.Bound())
		}
	}
	for _, o := range h.Plan.Objects {
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, h.Plan.Patience())
		err := free(limited, clients, o, h)
		cancel()
		if err != nil {
			violations = append(violations, plan.Violation{Kind: "left behind", Text: fmt.Sprintf("%s: %v", o.Key, err)})
		} else if d := time.Since(began); d > bound {
			violations = append(violations, plan.Violation{Kind: "recovery", Text: fmt.Sprintf("%s is free %v after all have ended", o.Key, d)})
		}
	}
	return append(violations, onlyExpiring(ctx, s)...)
}

// free takes the whole of an object, and gives it back.
func free(ctx context.Context, clients []*latchkey.Client, o plan.Object, h *judge.History) error {
	c := clients[0]
	take := func(l *latchkey.Lock, err error) error {
		if err != nil {
			return err
		}
		return l.Do(ctx, func(context.Context, *latchkey.Hold) error { return nil })
	}
	switch {
	case o.Family == plan.Red:
		return take(redlock.New(clients, o.Key))
	case o.Family == plan.Halves:
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
	if o.Family == plan.Counting && h.Plan.Calm() && !o.Changes {
		sem, err := semaphore.NewCounting(c, o.Key)
		if err != nil {
			return err
		}
		free, err := sem.Available(ctx)
		for ; err == nil && free != o.Capacity; free, err = sem.Available(ctx) { // what was cancelled comes back
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
		if err != nil {
			return fmt.Errorf("of %d permits %d are free: %w", o.Capacity, free, err)
		}
	}
	return nil
}

// freePermits sees that all permits are there, no more and no less.
func freePermits(ctx context.Context, c *latchkey.Client, o plan.Object, h *judge.History) error {
	sem, err := semaphore.New(c, o.Key)
	if err != nil {
		return err
	}
	for {
		state, err := sem.Inspect(ctx)
		switch {
		case err != nil && (h.Loses() || o.Taken && errors.Is(err, semaphore.ErrNotSet)):
			return nil // it was lost, and nobody has made it again
		case errors.Is(err, semaphore.ErrNotSet) && o.Changes && !h.WasSet(o):
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

// onlyExpiring looks for keys without a time to live. The number of permits has none, nor the count of a
// latch.
func onlyExpiring(ctx context.Context, s *faults.Scene) (violations []plan.Violation) {
	for _, c := range s.Plain {
		if role, err := c.Do(ctx, c.B().Role().Build()).ToArray(); err == nil && len(role) > 0 {
			if name, _ := role[0].ToString(); name == "slave" { // its primary has the same
				continue
			}
		}
		all, err := keys(ctx, c)
		if err != nil {
			return []plan.Violation{{Kind: "left behind", Text: err.Error()}}
		}
		for name, ttl := range all {
			stays := strings.HasSuffix(name, plan.DataSuffix) || slices.ContainsFunc([]plan.Family{plan.Leased, plan.Queued, plan.Counting, plan.Latch}, func(f plan.Family) bool {
				return strings.Contains(name, "-"+string(f)) // each key has the name of its object in it
			})
			if ttl == -1 && !stays {
				violations = append(violations, plan.Violation{Kind: "left behind", Text: "a key without a time to live: " + name})
			}
		}
	}
	return violations
}

// keys returns all keys of a server with their times to live.
func keys(ctx context.Context, c rueidis.Client) (map[string]int64, error) {
	names, err := c.Do(ctx, c.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for _, name := range names {
		ttl, err := c.Do(ctx, c.B().Pttl().Key(name).Build()).AsInt64()
		if err != nil {
			return nil, err
		}
		if ttl != -2 {
			all[name] = ttl
		}
	}
	return all, nil
}
