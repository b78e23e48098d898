package core

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// InspectLimit is how many entries of a queue Inspect lists.
const InspectLimit = 1000

// resource is one name on one client: every lock of that name shares it, and with it the queue inside the process. It is
// what the waiting loop sees as the server. It is also the key under which a hold is found in a context.
type resource struct {
	place
	kind     *Kind
	commands Commands
	batch    uint16 // which renewals go together
	room     *wait.Room
	line     wait.Line[*tenure] // of rlock: who has the turn competes, or holds
	holder   atomic.Pointer[tenure]

	// Of a cluster client: its inbox for this name, open while somebody waits.
	mu      sync.Mutex
	users   int
	channel *hub.Channel
}

// resource returns the one of a name. It lives for as long as a lock, a waiter or a hold refers to it.
func queueOf(c *Client, kind *Kind, name string) (*resource, error) {
	return found(c, kind.Family, name, func(at place) *resource {
		r := &resource{place: at, kind: kind, batch: c.conn.Batch(at.keys)}
		r.room = wait.NewRoom(c.closing, r, c.options.Lease)
		r.commands = kind.Commands(r)
		return r
	})
}

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

// Clock, Acquire, Leave, Forget, Parted, Refuse, Inbox, Listening, Failed, Up and Go are wait.Server.

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
		reply, err = r.commands.Acquire(ctx, claim, mode)
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
		case reply.Token > 0 && !r.kind.Undated:
			r.granted(ctx, reply.Token, sent, mode == lua.Again)
		}
		if reply.Sequence > 0 {
			r.queued(w)
		}
	}
	return reply, err
}

func (r *resource) Leave(ws []*wait.Waiter) ([]bool, error) {
	batch := make([]lua.Departure, 0, len(ws))
	ends := make([]int, len(ws)) // of each waiter's part of the batch
	for i, w := range ws {
		if _, old := r.offering(w); old != nil { // the offer may not have run, or may run only later: neither id may stay
			batch = append(batch, lua.Departure{Owner: old.waiter.Owner, Entry: r.claim(&old.waiter).Entry(), Everywhere: true})
		}
		claim := r.claim(w)
		batch = append(batch, lua.Departure{Owner: w.Owner, Entry: claim.Entry(), Everywhere: r.room.Stray(w)})
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

func (r *resource) Forget(w *wait.Waiter) {
	t, _ := r.client.Forget(w.Number).(*tenure)
	if t != nil && t.offered.Load() != nil {
		r.client.Go(t.answered) // it has been ended with w
	}
}

func (r *resource) Parted(w *wait.Waiter, inheritable bool) bool {
	t := r.tenure(w.Number)
	if t == nil || !t.delegate {
		return false
	}
	if inheritable {
		return r.line.Pass(t)
	}
	r.line.Pass(nil)
	return false
}

func (r *resource) Refuse(w *wait.Waiter, token int64) {
	t := r.tenure(w.Number)
	m := lua.Message{Family: r.keys.Family(), Number: w.Number, Name: r.name(), Owned: lua.Owned{Token: token}}
	r.client.Go(func() {
		if t == nil {
			r.client.refuseGrant(m)
		} else {
			t.refuse(m)
		}
	})
}

// tenure finds one by its number.
func (r *resource) tenure(n uint64) *tenure {
	t, _ := r.client.Tenure(n).(*tenure)
	return t
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
	if t = r.tenure(w.Number); t != nil {
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
		r.channel = r.client.hub.Open(r.keys.Inbox(r.client.ids.client), r.room.RecheckAll)
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

// RecheckAll, AskAround and ClockSet are of [Queue].

func (r *resource) RecheckAll() { r.room.RecheckAll() }

func (r *resource) AskAround(pause func() bool) { r.room.AskAround(pause) }

func (r *resource) ClockSet() { r.room.ClockSet() }
