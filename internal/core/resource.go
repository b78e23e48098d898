package core

import (
	"context"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// resource is one name on one client: every lock of that name shares it, and with it the queue inside the process. It is
// what the waiting loop sees as the server. It is also the key under which a hold is found in a context.
type resource struct {
	client *Client
	keys   *lua.Lock
	slot   uint16
	room   *wait.Room

	// Of a cluster client: its inbox for this name, open while somebody waits.
	mu      sync.Mutex
	users   int
	channel *hub.Channel
}

// resource returns the one of a name. It lives for as long as a lock, a waiter or a hold refers to it.
func (c *Client) resource(name string) (*resource, error) {
	keys, err := lua.NewLock(c.options.Prefix+name, c.sharded)
	if err != nil {
		return nil, invalid("%w", err)
	}
	key := keys.Name()
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.resources[key].Value(); r != nil {
		return r, nil
	}
	r := &resource{client: c, keys: keys, slot: c.conn.Slot(keys)}
	r.room = wait.NewRoom(c.closing, r, c.options.Lease)
	c.resources[key] = weak.Make(r)
	runtime.AddCleanup(r, c.forgetResource, key)
	return r, nil
}

func (c *Client) forgetResource(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.resources[key]; ok && p.Value() == nil {
		delete(c.resources, key)
	}
}

func (r *resource) health() *wait.Health { return r.client.health[r.slot%slots] }

func (r *resource) name() string { return r.keys.Name() }

// Acquire, Leave, Forget, Inbox, Listening, Failed, Up and Go are wait.Server.

func (r *resource) Acquire(ctx context.Context, w *wait.Waiter, mode lua.Mode) (lua.Acquired, error) {
	c := r.client
	if _, ok := ctx.Deadline(); ok {
		ctx = undated{ctx} // at a deadline rueidis closes the connection, which everybody uses; at a cancellation it does not
	}
	reply, err := c.conn.Acquire(ctx, r.keys, w.Owner, c.seen.Load(), milliseconds(w.Lease), mode, c.options.MaxWaiters)
	if err == nil {
		r.health().Succeeded()
		c.saw(reply.Token)
		if reply.Sequence > 0 {
			c.options.Observer.queued(r.name())
		}
	}
	return reply, err
}

// undated hides the deadline of a context. It is done at that time all the same.
type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

func (r *resource) Leave(w *wait.Waiter) error {
	entry := lua.Entry(w.Owner, milliseconds(w.Lease))
	_, err := r.client.conn.Release(context.Background(), r.keys, w.Owner, entry, r.client.seen.Load(), 0)
	return err
}

func (r *resource) Forget(w *wait.Waiter) {
	c := r.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.tenures[w.Number]; t != nil {
		delete(c.tenures, w.Number)
		c.waiters.add(-1)
	}
}

func (r *resource) Inbox(ctx context.Context) error {
	if !r.client.sharded {
		return r.client.inbox.Wait(ctx)
	}
	r.mu.Lock()
	if r.channel == nil {
		r.channel = r.client.hub.Open(r.keys.Inbox(r.client.id), r.room.RecheckAll)
	}
	channel := r.channel
	r.mu.Unlock()
	return channel.Wait(ctx)
}

func (r *resource) Listening() bool {
	if !r.client.sharded {
		return r.client.inbox.Up()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.channel != nil && r.channel.Up()
}

// enter and exit count who may need the resource's own inbox.
func (r *resource) enter() {
	if r.client.sharded {
		r.mu.Lock()
		r.users++
		r.mu.Unlock()
	}
}

func (r *resource) exit() {
	if !r.client.sharded {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users--; r.users == 0 && r.channel != nil {
		r.channel.Close()
		r.channel = nil
	}
}

func (r *resource) Failed(err error) {
	r.health().Failed(err, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, r.client.options.CommandTimeout)
		defer cancel()
		return r.client.conn.Probe(ctx, r.keys)
	})
}

func (r *resource) Up(ctx context.Context) error { return r.health().Wait(ctx) }

func (r *resource) Go(f func()) { r.client.Go(f) }

// milliseconds rounds up: a lease in Redis may be longer than it is trusted, never shorter.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// renewer is what the lease keeper sees.
type renewer struct{ client *Client }

func (r renewer) Go(f func()) { r.client.Go(f) }

func (r renewer) Slot(i *lease.Item) uint16 { return i.Owner.(*tenure).slot }

func (r renewer) Renew(ctx context.Context, items []*lease.Item, leases []time.Duration) ([]bool, bool, error) {
	batch := make([]lua.Renewal, len(items))
	for n, i := range items {
		t := i.Owner.(*tenure)
		batch[n] = lua.Renewal{Lock: t.keys, Owner: t.waiter.Owner, Lease: milliseconds(leases[n])}
	}
	first := items[0].Owner.(*tenure)
	held, err := r.client.conn.Renew(context.WithoutCancel(ctx), batch)
	if err == nil {
		first.health().Succeeded()
		return held, false, nil
	}
	r.client.options.Logger.Warn("latchkey: renewal failed", "holds", len(items), "error", err)
	passing := lua.Passing(err)
	if passing {
		first.Failed(err)
	}
	return nil, passing, err
}
