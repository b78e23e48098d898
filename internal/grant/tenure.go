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

// tenure is one owner id, from the first command that the client sends with it until nothing of it is left in Redis.
// The lease, its renewal and its loss are the tenure's. Goroutines of the process that pass the lock on among
// themselves have their turns in one tenure, one after the other.
type tenure struct {
	queue   *Queue
	name    string
	terms   *terms.Terms // of the primitive whose goroutine competes, or was the first to hold
	audible bool         // the inbox was confirmed before the tenure competed: no "others wait" was missed
	heard   uint64       // if the tenure may linger: what hearing returned before it competed
	waiter  wait.Waiter
	item    lease.Item
	first   turn

	parting sync.Mutex // locked while ReleaseN, Downgrade or Detach runs: one at a time

	// The queue's mutex guards the fields below.

	offered    *tenure // the tenure that is given up for this one; nil once Redis has answered the offer
	loss       error   // why the tenure was lost; nil: it was not lost
	revoked    revocation
	permits    int   // how many permits it holds, or wants; [All]: all that are free
	turn       *turn // the turn that holds; nil between two turns. If shared, the first of a chain
	weak       int   // downgrades that may have taken effect; if more than 0, others may hold too
	joined     int   // how many readers have joined the tenure
	handOffs   handOffs
	stay       stay
	asks       *session.Date   // when the next question is due
	opening    First           // sends the first acquire; nil: the kind does, or it was sent
	partOf     *Part           // the part of a lock over several servers; nil: none. Set before the tenure competes
	caller     context.Context // context of the call that competes with the tenure
	made       time.Time
	sharing    sharing
	contention contention
	shared     bool // its turns hold together
	hasTurn    bool // it has the turn of the line: it competes for the line, or holds and must pass the turn on
	parted     bool // a part of its permits was given back, or is about to be
	watches    bool // the client asks Redis whether others wait, now or at asks
}

// revocation says that Redis took back what it had granted.
type revocation struct {
	token int64 // every grant up to this token; 0: none
	why   error
}

// Target, Item, Renewal, Batch, Weight, Hear, Interrupt, Tell and HeldName implement [session.Tenure].

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
	case t.partOf != nil: // the hold's context does not derive from the caller's
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

// refuse gives back a grant that the tenure cannot use. If the tenure holds, or is about to, the message says that
// Redis has revoked the earlier grant of the tenure.
func (t *tenure) refuse(m lua.Message) {
	t.revoke(m.Token, lease.ErrGone)
	t.queue.At.Client.RefuseGrant(m)
}

// All is the number of permits of a tenure that takes all free permits, until the grant says how many.
const All = -1

// newTenure registers a fresh owner id, so that all that Redis says of the id finds the tenure. It returns nil once
// the client is closing.
func (p *Primitive) newTenure(of *contender) *tenure {
	c := p.Queue.At.Client
	n := c.IDs.Next()
	t := &tenure{queue: p.Queue, name: p.Name, terms: &p.terms, hasTurn: of.inTurn, permits: of.Permits, shared: p.Shared, partOf: of.part,
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
	case of.inTurn && p.terms.Passable() && p.Queue.hasNext(): // else the first goroutine that comes may offer
		t.waiter.Demand.Permits = p.terms.Holds // tokens for the holds that follow in this process
	}
	if of.from == nil && p.terms.Lingers() && p.Queue.mayLinger() { // an attach cannot tell Redis that the lock lingers
		if t.heard = t.queue.hearing(); t.heard > 0 { // else no client could end the lingering
			t.waiter.Demand.Lingers, t.waiter.Demand.Permits = true, terms.MaxBudgetHolds
		}
	}
	if !c.Register(n, t) {
		return nil
	}
	return t
}
