package grant

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/records"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// tenure is one owner id: from the first command that is sent with it until nothing of it is left in Redis.
// The lease, its renewal and its loss are the tenure's. Goroutines of the process that pass the lock on among
// themselves have their turns in it, one after the other.
type tenure struct {
	queue   *Queue
	name    string
	terms   terms.Terms
	audible bool   // the inbox was confirmed before it competed: no "others wait" can have been missed
	heard   uint64 // of one that may linger: what hearing was before it competed
	waiter  wait.Waiter
	item    lease.Item
	first   turn

	parting sync.Mutex // held while a part of the permits is given back, or a downgrade is under way: one after the other

	// Guarded by the mutex of its queue.

	offered    *tenure // the one that is given up for this one, until Redis has answered that
	loss       error   // why it was lost; nil unless it was
	revoked    revocation
	permits    int   // how many it holds, or wants; [All]: what is free
	turn       *turn // who holds; nil between two turns. Of a shared tenure the first of a chain
	shared     bool  // its turns hold together
	weak       int   // downgrades that may have been done: it may not be its holder's alone any more
	sharing    sharing
	joined     int  // how many have joined it
	hasTurn    bool // it has the turn of the line: it competes for those in it, or holds and must pass it on
	parted     bool // a part of its permits was given back, or is about to be
	handOffs   handOffs
	stay       stay
	watches    bool          // Redis is being asked whether others wait
	asks       *session.Date // the next time
	opening    First         // what its first acquire is; nil: the kind's, or it was sent
	partOf     *Part         // set before it competes; nil unless it is one of a lock over several servers
	contention contention
	caller     context.Context // of the call that competes with it
	made       time.Time
}

// revocation says that Redis took back what it had granted.
type revocation struct {
	token int64 // every grant up to this token; 0: none
	why   error
}

// Target, Item, Renewal, Batch, Weight, Hear, Interrupt, Tell and HeldName are of [session.Tenure].

func (t *tenure) Target() *session.Target { return &t.queue.At }

func (t *tenure) Item() *lease.Item { return &t.item }

func (t *tenure) Renewal(d time.Duration) lua.Renewal {
	return lua.Renewal{Keys: t.queue.At.Keys, Owner: t.waiter.Owner, Lease: session.Milliseconds(d)}
}

func (t *tenure) Batch() uint16 { return t.queue.batch }

func (t *tenure) Weight() int {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.permits
}

func (t *tenure) Interrupt() {
	t.queue.waiters.Interrupt(&t.waiter)
	t.leaveParked()
}

func (t *tenure) Tell() records.Telling {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	switch s := t.state(); {
	case s <= wait.Queued:
		return records.Telling{Of: &t.queue.At, Since: t.made, Caller: t.caller}
	case !s.Owns():
		return records.Telling{}
	case t.turn == nil: // it lingers, or is being given back
		return records.Telling{Of: &t.queue.At, Since: t.first.moment, Holds: true}
	case t.partOf != nil: // its hold is on no context of its caller's
		return records.Telling{Of: &t.queue.At, Since: t.turn.moment, Holds: true, Caller: t.caller}
	default:
		return records.Telling{Of: &t.queue.At, Since: t.turn.moment, Holds: true, Caller: t.turn.first.Parent()}
	}
}

func (t *tenure) HeldName() string {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if !t.owns() || t.stay.spare || t.state() == wait.Offered {
		return ""
	}
	return t.name
}

func (t *tenure) Hear(m lua.Message) {
	switch m.Kind {
	case lua.Grant:
		if !t.queue.At.ServerClock.FitsMessage(m.Now) {
			t.queue.At.ReadClock()
		}
		if m.Others && !t.queue.kind.Exclusive {
			t.othersWait()
		}
		if !t.queue.waiters.Granted(&t.waiter, m) {
			t.queue.At.Client.Go(func() { t.refuse(m) })
		}
	case lua.Ask:
		if !t.queue.waiters.OwnerAnswered(&t.waiter) {
			t.queue.At.Client.Go(t.queue.waiters.RecheckAll)
		}
	case lua.Attempt:
		t.wanted()
		t.queue.At.Client.Go(func() { t.answer(m) })
	case lua.Forced:
		t.queue.At.Client.Go(func() { t.revoke(m.Token, hold.ErrForced) })
	case lua.Want:
		t.wanted()
		t.othersWait()
	case lua.Ends:
		t.queue.waiters.LeaseEnds(time.Duration(m.Lease) * time.Millisecond)
	}
}

// refuse gives back a grant that the tenure cannot use. Where it holds, or is about to, the message says that
// Redis has revoked what it had.
func (t *tenure) refuse(m lua.Message) {
	t.revoke(m.Token, lease.ErrGone)
	t.queue.At.Client.RefuseGrant(m)
}

// All is the number of permits of a tenure that takes whatever is free, until it is granted that.
const All = -1

// newTenure registers a fresh id, so that whatever Redis says of it finds it. It returns nil once the client
// is closing.
func (p *Primitive) newTenure(of *contender) *tenure {
	c := p.Queue.At.Client
	n := c.IDs.Next()
	t := &tenure{queue: p.Queue, name: p.Name, terms: p.terms, hasTurn: of.inTurn, permits: of.Permits, shared: p.Shared, partOf: of.part,
		caller: of.Parent, made: time.Now(),
	}
	t.waiter = wait.Waiter{Number: n, Owner: c.IDs.ID(n), Lease: p.terms.Lease, Try: of.Try, Proposed: of.part != nil || of.from != nil, Opens: of.First != nil}
	if of.from != nil {
		t.waiter.From = *of.from
	}
	t.opening = of.First
	if of.part != nil {
		t.waiter.Token = of.part.token
	}
	if of.contended {
		t.contention = announced
	}
	if polls := p.terms.Polling; polls != nil {
		t.waiter.Pauses = &retry.Backoff{First: polls.First, Last: polls.Last}
	}
	switch {
	case p.Demand != nil:
		t.waiter.Demand = p.Demand(of.Permits)
	case of.inTurn && p.terms.Passable() && p.Queue.hasNext(): // else the first that comes may offer
		t.waiter.Demand.Permits = p.terms.Holds // tokens for the holds that follow in this process
	}
	if of.from == nil && p.terms.Lingers() && p.Queue.mayLinger() { // else Redis is not told that it does
		if t.heard = t.queue.hearing(); t.heard > 0 { // else no client could end it
			t.waiter.Demand.Lingers, t.waiter.Demand.Permits = true, terms.MaxBudgetHolds
		}
	}
	if !c.Register(n, t) {
		return nil
	}
	return t
}
