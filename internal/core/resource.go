package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// resource is one name on one client: every lock of that name shares it, and with it the queue inside the process. It is
// what the waiting loop sees as the server. It is also the key under which a hold is found in a context.
type resource struct {
	place
	batch   uint16 // which renewals go together
	waiters *wait.Waiters
	line    wait.Line[*tenure] // of rlock: who has the turn competes, or holds
	holder  atomic.Pointer[tenure]

	declared declaration // of a semaphore
	trades   trades      // of a semaphore
	receipts receipts    // of plain permits

	// Of a cluster client: its inbox for this name, open while somebody waits.
	mu      sync.Mutex
	users   int
	channel *hub.Channel
}

// resource returns the one of a name. It lives for as long as a lock, a waiter or a hold refers to it.
func (c *Client) resource(family lua.Family, name string) (*resource, error) {
	return found(c, &c.resources, family, name, func(at place) *resource {
		r := &resource{place: at, batch: c.conn.Batch(at.keys)}
		r.waiters = wait.New(c.closing, r, c.options.Lease)
		return r
	})
}

// exclusive reports whether one tenure holds at a time.
func (r *resource) exclusive() bool { return r.keys.Family() == lua.Locks }

// holds is told that a tenure holds the lock. If another one of this client is still kept, the one with the smaller token was
// lost: a release is sent only for what is not kept any more.
func (r *resource) holds(t *tenure) {
	for {
		before := r.holder.Load()
		if before != nil && before.first.token > t.first.token {
			r.client.keeper.Lose(&t.item, lease.ErrGone)
			return
		}
		if r.holder.CompareAndSwap(before, t) {
			if before != nil {
				r.client.keeper.Lose(&before.item, lease.ErrGone)
			}
			return
		}
	}
}

// Clock, Acquire, Cancel, Gone, GivenUp, Revoked, Inbox, Listening, Failed, Up and Go are wait.Server.

func (r *resource) Clock(at time.Time) int64 { return r.clock.at(at) }

func (r *resource) Acquire(ctx context.Context, w *wait.Waiter, mode lua.Mode, until int64) (reply lua.Acquired, err error) {
	c := r.client
	ctx = withoutDeadline(ctx)
	claim := r.claim(w)
	claim.Until = until
	gone, sent := false, time.Now()
	if t, old := r.offering(w); old != nil {
		if c.sharded {
			r.listen() // from now on others may have to say that they wait
		}
		reply, err = c.conn.Offer(ctx, r.keys, old.waiter.Owner, old.strayEntry(), old.used(), claim, r.seen.Load(), mode)
		if err == nil {
			t.answered()
			gone = reply.Gone
		}
	} else {
		reply, err = r.take(ctx, claim, mode)
	}
	if gone { // lost between two holds, unless an earlier copy of the offer has run
		if mode == lua.First {
			c.options.Logger.Warn("latchkey: lock lost between two holds of this process", "name", r.name())
			mode = lua.Again // a copy of the offer may have queued it
		}
		sent = time.Now()
		reply, err = c.conn.Acquire(ctx, r.keys, claim, r.seen.Load(), mode)
	}
	if err == nil {
		r.health().Succeeded()
		raise(r.seen, reply.Token)
		switch {
		case reply.Now > 0:
			c.told(r.clock, reply.Now, sent)
		case reply.Token > 0 && r.keys.Family() != lua.Plain: // whose tokens are no readings
			r.granted(ctx, reply.Token, sent, mode == lua.Again)
		}
		if reply.Sequence > 0 {
			r.queued(w)
		}
	}
	return reply, err
}

// withoutDeadline hides the deadline of a context, which is done at that time all the same. When a deadline passes, rueidis
// closes the connection, which everybody uses; at a cancellation it does not.
func withoutDeadline(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); ok {
		return undated{ctx}
	}
	return ctx
}

type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

func (r *resource) Cancel(ws []*wait.Waiter) ([]bool, error) {
	batch := make([]lua.Departure, 0, len(ws))
	ends := make([]int, len(ws)) // of each waiter's part of the batch
	for i, w := range ws {
		if _, old := r.offering(w); old != nil { // the offer may not have run, or may run only later: neither id may stay
			batch = append(batch, lua.Departure{Owner: old.waiter.Owner, Entry: r.claim(&old.waiter).Entry(), Everywhere: true})
		}
		claim := r.claim(w)
		batch = append(batch, lua.Departure{Owner: w.Owner, Entry: claim.Entry(), Everywhere: r.waiters.Stray(w)})
		ends[i] = len(batch)
	}
	parts, err := r.client.conn.Leave(context.Background(), r.keys, batch, r.seen.Load())
	if err != nil {
		return nil, err
	}
	ended, begin := make([]bool, len(ws)), 0
	for i, end := range ends {
		ended[i] = !slices.Contains(parts[begin:end], false) // in one step, or both again
		begin = end
	}
	return ended, nil
}

func (r *resource) Gone(w *wait.Waiter) {
	c := r.client
	c.mu.Lock()
	t := c.tenures[w.Number]
	if t != nil {
		delete(c.tenures, w.Number)
		c.waiters.add(-1)
	}
	c.mu.Unlock()
	if t != nil && t.offered.Load() != nil {
		c.Go(t.answered) // it has been ended with w
	}
}

func (r *resource) GivenUp(w *wait.Waiter, inheritable bool) bool {
	t := r.client.tenure(w.Number)
	if t == nil || !t.delegate {
		return false
	}
	if inheritable {
		return r.line.Pass(t)
	}
	r.line.Pass(nil)
	return false
}

func (r *resource) Revoked(w *wait.Waiter, token int64) {
	c := r.client
	t := c.tenure(w.Number)
	m := lua.Message{Family: r.keys.Family(), Number: w.Number, Name: r.name(), Owned: lua.Owned{Token: token}}
	c.Go(func() { c.refuseGrant(t, m) })
}

// claim is what the commands of w ask for.
func (r *resource) claim(w *wait.Waiter) lua.Claim {
	return lua.Claim{Owner: w.Owner, Lease: milliseconds(w.Lease), Demand: w.Demand, Longest: r.client.options.MaxWaiters}
}

// offering returns the tenure of w and the one that it was offered for, as long as Redis has not answered that.
func (r *resource) offering(w *wait.Waiter) (t, old *tenure) {
	if !w.Offers {
		return nil, nil
	}
	if t = r.client.tenure(w.Number); t != nil {
		old = t.offered.Load()
	}
	return t, old
}

func (r *resource) Inbox(ctx context.Context) error {
	if !r.client.sharded {
		return r.client.inbox.Wait(ctx)
	}
	return r.listen().Wait(ctx)
}

// listen opens the resource's own inbox.
func (r *resource) listen() *hub.Channel {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.channel == nil {
		r.channel = r.client.hub.Open(r.keys.Inbox(r.client.ids.client), r.waiters.RecheckAll)
	}
	return r.channel
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

// milliseconds rounds up: a lease in Redis may be longer than it is trusted, never shorter.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// renewer is what the lease keeper sees.
type renewer struct{ client *Client }

func (r renewer) Go(f func()) { r.client.Go(f) }

func (r renewer) Slot(i *lease.Item) uint16 { return i.Owner.(*tenure).batch }

func (r renewer) Renew(ctx context.Context, items []*lease.Item, leases []time.Duration) ([]bool, bool, error) {
	batch := make([]lua.Renewal, len(items))
	for n, i := range items {
		t := i.Owner.(*tenure)
		batch[n] = lua.Renewal{Keys: t.keys, Owner: t.waiter.Owner, Lease: milliseconds(leases[n])}
	}
	first, sent := items[0].Owner.(*tenure), time.Time{}
	held := make([]bool, 0, len(items))
	var err error
	for begin, end := 0, 0; begin < len(items) && err == nil; begin = end {
		for weight := 0; end < len(items) && (end == begin || weight < MaxPermits); end++ { // other clients wait for a script
			weight += items[end].Owner.(*tenure).weight()
		}
		var some []bool
		sent = time.Now()
		var now int64
		some, now, err = r.client.conn.Renew(context.WithoutCancel(ctx), batch[begin:end])
		held = append(held, some...)
		if err == nil {
			r.told(items[begin:end], now, sent)
		}
	}
	if err == nil {
		first.health().Succeeded()
		return held, false, nil
	}
	if len(items) > 1 && (errors.Is(err, lua.ErrApart) || errors.Is(err, lua.ErrMoving)) {
		return nil, true, lease.ErrApart
	}
	r.client.options.Logger.Warn("latchkey: renewal failed", "holds", len(items), "error", err)
	passing := lua.Passing(err)
	if passing {
		first.Failed(err, sent)
	}
	return nil, passing, err
}

// told takes a reading of the clock for each of these: in a cluster each name has one of its own. One that
// heard nothing of a jump would take it later for one after this renewal.
func (r renewer) told(items []*lease.Item, reading int64, sent time.Time) {
	var last *clock
	for _, i := range items {
		if k := i.Owner.(*tenure).clock; k != last {
			r.client.told(k, reading, sent)
			last = k
		}
	}
}
