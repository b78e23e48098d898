package grant

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// InspectLimit is how many entries of a queue Inspect lists.
const InspectLimit = 1000

// resource is one name on one client: every lock of that name shares it, and with it the queue inside the process. It is
// what the waiting loop sees as the server. It is also the key under which a hold is found in a context.
type Queue struct {
	session.Target
	kind     *Kind
	Commands Commands
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
func QueueOf(c *session.Client, kind *Kind, name string) (*Queue, error) {
	return session.GetOrCreate(c, kind.Family, name, func(at session.Target) *Queue {
		r := &Queue{Target: at, kind: kind, batch: c.Conn.Batch(at.Keys)}
		r.room = wait.NewRoom(c.Closing, r, c.Options.Lease)
		r.Commands = kind.Commands(r)
		return r
	})
}

// holds is told that a tenure holds the lock. If another one of this client is still kept, the one with the smaller token was
// lost: a release is sent only for what is not kept any more.
func (r *Queue) supersede(t *tenure) {
	for {
		before := r.holder.Load()
		if before != nil && before.first.token > t.first.token {
			r.Client.Keeper.Lose(&t.item, lease.ErrGone)
			return
		}
		if r.holder.CompareAndSwap(before, t) {
			if before != nil {
				r.Client.Keeper.Lose(&before.item, lease.ErrGone)
			}
			return
		}
	}
}

// Clock, Acquire, Leave, Forget, Parted, Refuse, Inbox, Listening, Failed, Up and Go are wait.Server.

func (r *Queue) Clock(at time.Time) int64 { return r.ServerClock.At(at) }

func (r *Queue) Acquire(ctx context.Context, w *wait.Waiter, mode lua.Mode, until int64) (reply lua.Acquired, err error) {
	c := r.Client
	ctx = session.WithoutDeadline(ctx)
	claim := r.claim(w)
	claim.Until = until
	gone, sent := false, time.Now()
	if t, old := r.offering(w); old != nil {
		if c.Sharded {
			r.listen() // from now on others may have to say that they wait
		}
		reply, err = c.Conn.Offer(ctx, r.Keys, old.waiter.Owner, old.strayEntry(), old.used(), claim, r.Floor.Load(), mode)
		if err == nil {
			t.answered()
			gone = reply.Gone
		}
	} else {
		reply, err = r.Commands.Acquire(ctx, claim, mode)
	}
	if gone { // lost between two holds, unless an earlier copy of the offer has run
		if mode == lua.First {
			c.Options.Logger.Warn("latchkey: lock lost between two holds of this process", "name", r.Name())
			mode = lua.Again // a copy of the offer may have queued it
		}
		sent = time.Now()
		reply, err = c.Conn.Acquire(ctx, r.Keys, claim, r.Floor.Load(), mode)
	}
	if err == nil {
		r.Health().Succeeded()
		session.Raise(r.Floor, reply.Token)
		switch {
		case reply.Now > 0:
			c.RecordClock(r.ServerClock, reply.Now, sent)
		case reply.Token > 0 && !r.kind.Undated:
			r.CheckClock(ctx, reply.Token, sent, mode == lua.Again)
		}
		if reply.Sequence > 0 {
			r.queued(w)
		}
	}
	return reply, err
}

func (r *Queue) Leave(ws []*wait.Waiter) ([]bool, error) {
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
	parts, err := r.Client.Conn.Leave(context.Background(), r.Keys, batch, r.Floor.Load())
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

func (r *Queue) Forget(w *wait.Waiter) {
	t, _ := r.Client.Forget(w.Number).(*tenure)
	if t != nil && t.offered.Load() != nil {
		r.Client.Go(t.answered) // it has been ended with w
	}
}

func (r *Queue) Parted(w *wait.Waiter, inheritable bool) bool {
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

func (r *Queue) Refuse(w *wait.Waiter, token int64) {
	t := r.tenure(w.Number)
	m := lua.Message{Family: r.Keys.Family(), Number: w.Number, Name: r.Name(), Owned: lua.Owned{Token: token}}
	r.Client.Go(func() {
		if t == nil {
			r.Client.RefuseGrant(m)
		} else {
			t.refuse(m)
		}
	})
}

// tenure finds one by its number.
func (r *Queue) tenure(n uint64) *tenure {
	t, _ := r.Client.Tenure(n).(*tenure)
	return t
}

// claim is what the commands of w ask for.
func (r *Queue) claim(w *wait.Waiter) lua.Claim {
	return lua.Claim{Owner: w.Owner, Lease: session.Milliseconds(w.Lease), Demand: w.Demand, Longest: r.Client.Options.MaxWaiters}
}

// offering returns the tenure of w and the one that it was offered for, as long as Redis has not answered that.
func (r *Queue) offering(w *wait.Waiter) (t, old *tenure) {
	if !w.Offers {
		return nil, nil
	}
	if t = r.tenure(w.Number); t != nil {
		old = t.offered.Load()
	}
	return t, old
}

func (r *Queue) Inbox(ctx context.Context) error {
	if !r.Client.Sharded {
		return r.Client.Inbox.Wait(ctx)
	}
	return r.listen().Wait(ctx)
}

// listen opens the resource's own inbox.
func (r *Queue) listen() *hub.Channel {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.channel == nil {
		r.channel = r.Client.Hub.Open(r.Keys.Inbox(r.Client.IDs.Client), r.room.RecheckAll)
	}
	return r.channel
}

func (r *Queue) Listening() bool {
	if !r.Client.Sharded {
		return r.Client.Inbox.Up()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.channel != nil && r.channel.Up()
}

// enter and exit count who may need the resource's own inbox.
func (r *Queue) enter() {
	if r.Client.Sharded {
		r.mu.Lock()
		r.users++
		r.mu.Unlock()
	}
}

func (r *Queue) exit() {
	if !r.Client.Sharded {
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

func (r *Queue) RecheckAll() { r.room.RecheckAll() }

func (r *Queue) AskAround(pause func() bool) { r.room.AskAround(pause) }

func (r *Queue) ClockSet() { r.room.ClockSet() }
