package session

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/latchkey-go/latchkey/internal/records"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// registry is what the client knows of its tenures. The zero value is ready.
type registry struct {
	mu      sync.Mutex
	tenures map[uint64]Tenure // all that Redis may know of: waiting, held and leaving tenures
	waiters retry.Tally       // tenures that are not held, and other waits
	holds   retry.Tally       // tenures that are held
	begins  bool              // the next tenure begins [Client.Records]
}

// Register makes a tenure known by its number, and counts it as a waiter. Once the client is closing, Register does
// nothing, and returns false.
func (c *Client) Register(n uint64, t Tenure) bool {
	registered, begins := c.registry.add(n, t, c.Closing)
	if begins {
		c.Records.Tell()
	}
	return registered
}

// add does the work of [Client.Register]. begins says that the caller must look after the client's record from now
// on.
func (r *registry) add(n uint64, t Tenure, closing context.Context) (registered, begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if closing.Err() != nil {
		return false, false
	}
	if r.tenures == nil {
		r.tenures = map[uint64]Tenure{}
	}
	r.tenures[n] = t
	r.waiters.Add(1)
	begins, r.begins = r.begins, false
	return true, begins
}

// Forget ends what Register began: it removes the tenure, and counts it no longer. It returns the tenure, or nil if
// no tenure has that number.
func (c *Client) Forget(n uint64) Tenure {
	r := &c.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tenures[n]
	if t != nil {
		delete(r.tenures, n)
		r.waiters.Add(-1)
	}
	return t
}

// Drop removes a tenure that the client does not count any more.
func (c *Client) Drop(n uint64) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	delete(c.registry.tenures, n)
}

// Count adds to the numbers of waiters and of holds. Shutdown waits until both are zero.
func (c *Client) Count(waiters, holds int) {
	r := &c.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters.Add(waiters)
	r.holds.Add(holds)
}

// Tenure returns the tenure with that number, or nil.
func (c *Client) Tenure(n uint64) Tenure {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	return c.registry.tenures[n]
}

func (c *Client) tenures() []Tenure {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	return slices.Collect(maps.Values(c.registry.tenures))
}

// recorded returns all tenures, for the client's records.
func (r *registry) recorded() []records.Tenure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list()
}

// recordedOrBegin returns all tenures as well. If the registry is empty, the next tenure that registers begins the
// records again.
func (r *registry) recordedOrBegin() []records.Tenure {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begins = len(r.tenures) == 0
	return r.list()
}

// list returns all tenures. The caller holds the mutex.
func (r *registry) list() []records.Tenure {
	all := make([]records.Tenure, 0, len(r.tenures))
	for n, t := range r.tenures {
		all = append(all, records.Tenure{Number: n, Told: t})
	}
	return all
}

// waitForNone waits until t, a tally of the registry, is 0. It returns the cause if ctx ends first.
func (c *Client) waitForNone(ctx context.Context, t *retry.Tally) error {
	c.registry.mu.Lock()
	none := t.None()
	c.registry.mu.Unlock()
	return retry.Await(ctx, none)
}
