package grant

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

var errForced = errors.New("taken away by ForceUnlock or Delete")

// tenure is one owner id: from the first command that is sent with it until nothing of it is left in Redis. The lease, its
// renewal and its loss are the tenure's; goroutines of the process that pass the lock on among themselves have their turns
// in it, one after the other.
type tenure struct {
	*Queue
	name     string
	terms    terms
	delegate bool // it competes for those in the line, as whose head
	waiter   wait.Waiter
	item     lease.Item
	offered  atomic.Pointer[tenure] // the one that is given up for this one, until Redis has answered that
	first    turn

	parting sync.Mutex // held while a part of the permits is given back

	mu        sync.Mutex
	permits   int             // held, of a semaphore
	turn      *turn           // who holds; nil between two turns
	kept      bool            // it has been held
	lined     bool            // it has the turn of the line, and must pass it on
	token     int64           // of the last turn
	reserved  int64           // tokens for further turns
	wanted    time.Time       // since when it is known that others wait; zero: not known
	handed    int             // turns that began after that
	loss      error           // why it was lost; nil while it is not
	ending    bool            // it was released, or lost
	gone      bool            // forget was called
	revoked   int64           // what was granted up to this token has been taken away
	revokedBy error           // it was
	caller    context.Context // of whoever competes with it, for the hook that tells of its place in the queue
}

// Target, Item, Renewal, Batch, Weight, Hear, Interrupt and HeldName are of [Tenure].

func (t *tenure) Target() *session.Target { return &t.Queue.Target }

func (t *tenure) Item() *lease.Item { return &t.item }

func (t *tenure) Renewal(d time.Duration) lua.Renewal {
	return lua.Renewal{Keys: t.Keys, Owner: t.waiter.Owner, Lease: session.Milliseconds(d)}
}

func (t *tenure) Batch() uint16 { return t.batch }

func (t *tenure) Weight() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.permits
}

func (t *tenure) Interrupt() { t.room.Interrupt(&t.waiter) }

func (t *tenure) HeldName() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.kept || t.ending {
		return ""
	}
	return t.name
}

func (t *tenure) Hear(m lua.Message) {
	switch m.Kind {
	case lua.Grant:
		if !t.ServerClock.FitsMessage(m.Now) {
			t.ReadClock()
		}
		if !t.room.Granted(&t.waiter, m) {
			t.Client.Go(func() { t.refuse(m) })
		}
	case lua.Ask:
		t.Client.Go(t.room.RecheckAll)
	case lua.Forced:
		t.Client.Go(func() { t.revoke(m.Token, errForced) })
	case lua.Want:
		t.contend()
	case lua.Ends:
		t.room.Ends(time.Duration(m.Lease) * time.Millisecond)
	}
}

// refuse releases a grant for a tenure that is over, or that holds, or is about to: that has just learnt that
// what it was granted up to the message's token is gone.
func (t *tenure) refuse(m lua.Message) {
	t.revoke(m.Token, lease.ErrGone)
	t.Client.RefuseGrant(m)
}

// all is the number of permits of a tenure that takes whatever is free, until it has that.
const All = -1

// turn is one goroutine's time in a tenure, and that of those who re-enter.
type turn struct {
	tenure   *tenure
	token    int64
	sequence int64
	moment   time.Time // since when it holds
	last     *Hold     // of those that are not unlocked; they are chained. Guarded by the tenure's mutex
	first    Hold
}

// newTenure registers a fresh id, so that whatever Redis says of it finds it. It returns nil once the client is closing.
func (p *Primitive) newTenure(permits int, delegate bool) *tenure {
	c := p.Queue.Client
	n := c.IDs.Next()
	t := &tenure{Queue: p.Queue, name: p.Name, terms: p.terms, delegate: delegate, permits: permits}
	t.waiter = wait.Waiter{Number: n, Owner: c.IDs.ID(n), Lease: p.terms.lease}
	switch {
	case p.Demand != nil:
		t.waiter.Demand = p.Demand(permits)
	case delegate && p.terms.passable() && p.Queue.line.Waited(): // else the first that comes may offer
		t.waiter.Demand = strconv.Itoa(p.terms.holds)
	}
	if !c.Register(n, t) {
		return nil
	}
	return t
}

// hold turns a granted tenure into its first hold. It returns nil when the lease was over before that, or the client
// closed: then the tenure has been given back, and a delegate still has the turn of the line.
func (t *tenure) hold(parent context.Context, terms terms) *Hold {
	c, grant := t.Client, t.waiter.Grant
	session.Raise(t.Floor, grant.Token)
	t.item.Owner, t.item.Lease = t, terms.lease
	if terms.maxHold > 0 {
		t.item.End = grant.Moment.Add(terms.maxHold)
	}
	t.first = turn{tenure: t, token: grant.Token, sequence: t.waiter.Sequence(), moment: grant.Moment}
	t.first.begin(parent)
	t.mu.Lock()
	t.terms, t.turn, t.kept = terms, &t.first, true
	t.token, t.reserved = grant.Token, grant.Reserved
	if t.permits == All {
		t.permits = int(grant.Reserved)
	}
	if grant.Others {
		t.wanted = time.Now()
	}
	t.mu.Unlock()
	c.Count(-1, 1)
	if grant.Short {
		c.Keeper.KeepShort(&t.item, grant.Moment, min(terms.lease, wait.ShortLease))
	} else {
		c.Keeper.Keep(&t.item, grant.Moment, terms.lease)
	}
	c.WatchClock()
	if t.item.Left() <= 0 || c.Closing.Err() != nil {
		c.Keeper.Remove(&t.item)
		t.forget(true)
		t.end()
		return nil
	}
	t.mu.Lock()
	t.lined = t.delegate && terms.passable() && t.loss == nil
	leave := t.delegate && !t.lined // the next one queues in Redis while this one holds
	void, why := t.revoked >= grant.Token, t.revokedBy
	t.mu.Unlock()
	if leave {
		t.line.Pass(nil)
	}
	if t.kind.Exclusive {
		t.supersede(t)
	}
	if void { // while it became a hold
		c.Keeper.Lose(&t.item, why)
	}
	return &t.first.first
}

func (u *turn) begin(parent context.Context) {
	u.first = Hold{turn: u, parent: parent}
	u.last = &u.first
}

// reenter returns a further hold, or nil when the turn has ended meanwhile.
func (u *turn) reenter(parent context.Context) *Hold {
	t := u.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.last == nil || t.loss != nil { // being released, or lost
		return nil
	}
	u.last = &Hold{turn: u, parent: parent, before: u.last}
	return u.last
}

// leave removes h, and reports whether it was the last hold and whether the tenure was lost.
func (u *turn) leave(h *Hold) (last bool, loss error) {
	t := u.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := &u.last; *p != nil; p = &(*p).before {
		if *p == h {
			*p = h.before
			break
		}
	}
	return u.last == nil, t.loss
}

// taken is told that what was granted up to this token has been taken away. A grant after that is another matter, and one
// before it may still be on its way.
func (t *tenure) revoke(token int64, why error) {
	t.mu.Lock()
	if token > t.revoked {
		t.revoked, t.revokedBy = token, why
	}
	held := t.kept && token >= t.first.token
	t.mu.Unlock()
	if held {
		t.Client.Keeper.Lose(&t.item, why)
	}
}

// Lost is lease.Owner: it ends the contexts of all holds. Nothing is sent, because their code may still run; but others of
// this process may compete from now on.
func (t *tenure) Lost(reason error) {
	t.mu.Lock()
	t.loss = lossOf(reason)
	if t.turn != nil {
		for h := t.turn.last; h != nil; h = h.before {
			h.end(t.loss)
		}
	}
	lined, token, last := t.lined, t.token, t.turn
	if last == nil {
		last = &t.first
	}
	t.lined = false
	t.mu.Unlock()
	if lined {
		t.line.Pass(nil)
	}
	if t.end() {
		t.Client.Options.Logger.Warn("latchkey: lost", "name", t.name, "token", token, "reason", reason)
		t.Client.Notifier.Notify(func() { last.lost(token, reason) })
	}
	t.forget(false) // Unlock may never be called
}

func lossOf(reason error) error {
	if errors.Is(reason, session.ErrClosed) {
		return session.ErrClosed
	}
	return fmt.Errorf("%w: %w", session.ErrLost, reason)
}

// end takes the tenure out of the client's tally of holds, and reports whether this was the first call.
func (t *tenure) end() bool {
	t.mu.Lock()
	first := !t.ending
	t.ending = true
	t.mu.Unlock()
	if first {
		t.holder.CompareAndSwap(t, nil)
		t.Client.Count(0, -1)
	}
	return first
}

// forget is called when nothing more will be sent for the hold, once or more. With cancel, or while an acquire of it is
// unanswered or may still arrive, what it left in Redis is removed first.
func (t *tenure) forget(cancel bool) {
	t.mu.Lock()
	gone := t.gone
	t.gone = true
	t.mu.Unlock()
	if gone {
		return
	}
	t.Client.Count(1, 0) // until Forget
	if !t.room.Retire(&t.waiter, cancel) {
		t.Forget(&t.waiter)
	}
}
