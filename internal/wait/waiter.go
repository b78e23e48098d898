package wait

import (
	"container/list"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Waiter is a tenure as the queue sees it: what waits under an owner id that is never used again. Its exported
// fields are set before Wait.
type Waiter struct {
	Number uint64        // unique within the client
	Owner  string        // the owner id in Redis
	Lease  time.Duration // what it is granted by a reply; more than 0
	Demand lua.Demand    // what it asks for beside the lease
	Try    bool          // it makes one attempt, and never queues
	Offers bool          // its first command is an offer, which may take what an acquire would not
	From   string        // the owner id that has what it is to have; empty: it acquires
	Opens  bool          // its first acquire may be another one than the following acquires
	Grant  Grant         // set by Wait

	// Proposed says that its token is no reading of the clock at its grant: the client has proposed it, or a
	// hold that goes on has it.
	Proposed bool

	// Token is the one that an attempt is to get; 0: the next one.
	Token int64

	// Pauses are those between the attempts of a waiter that never queues; nil: it queues.
	Pauses *retry.Backoff

	// Patience is how long an attempt waits for the answer of an owner that may linger, before it asks once
	// more; 0: it does not.
	Patience time.Duration

	Place atomic.Int64 // where it stood in a long queue by the last answer; 0: not known

	// Guarded by the mutex.

	state      State
	trace      trace
	due        bool // Redis must be asked about it: at once, or after the answer to an acquire that is under way (rule 4)
	called     called
	heard      bool          // a message said that it was granted, and no reply has denied it since
	outlived   bool          // an answer said that it owns the lock, and came when that lease was over
	heardToken int64         // the token in that message
	unanswered retry.Tally   // acquires
	place      *list.Element // while it is queued
	sequence   int64         // see Sequence
	notice     notice
	answer     answer
	copies     copies
	reading    reading
	early      *lua.Message // of a grant, which arrived before the reply that dates it; nil: none
}

// trace is how near to the queue a waiter has come. It never grows less.
type trace uint8

const (
	untraced  trace = iota
	mayQueue        // an acquire of it was sent that may have queued it
	wasQueued       // it has been in the queue
)

// Grant is ownership, as it was learnt.
type Grant struct {
	lua.Owned
	Moment time.Time // not later than the moment when Redis wrote it
	Short  bool      // the lease is [ShortLease] at most until it is renewed
}

// Sequence is the place in the queue from which this waiter was granted: greater than the places of all before it,
// and 0 when it acquired without queueing.
func (w *Waiter) Sequence() int64 { return w.sequence }

// waits reports whether w can still be granted.
func (w *Waiter) waits() bool { return w.state.waits() }

// hasGrant reports whether w was granted what it waited for, and that is not over.
func (w *Waiter) hasGrant() bool { return w.state == Granted || w.state.Owns() }

// takeDue reports whether a question is due, which the caller must send.
func (w *Waiter) takeDue() bool {
	due := w.due
	w.due = false
	return due
}

// isDue reports whether a question is due that somebody must begin: no answer is on its way that would.
func (w *Waiter) isDue() bool { return w.due && w.unanswered.N() == 0 }

// contradictedBy reports whether a reply was written after the grant of w and says otherwise. Then Redis has
// revoked the grant.
func (w *Waiter) contradictedBy(reply lua.Acquired) bool {
	if reply.Queued && reply.After > 0 {
		return reply.After >= w.Grant.Token
	}
	return reply.Token > w.Grant.Token || reply.Queued && w.reading.known() && reply.Now > w.reading.clock
}

// notice is what Wait is told, and how it is woken.
type notice struct {
	news    news          // what Wait has not taken
	err     error         // nil: granted
	silence error         // Redis had been silent for long when the context of Wait ended
	wake    chan struct{} // capacity 1; nil while Wait does not sleep
}

// news is what kind of notice it is.
type news uint8

const (
	noNews  news = iota
	outcome      // a grant, or any other error
	setback      // an error that passes by itself
)

// tell leaves a notice for Wait. The notice of a grant replaces an error that was not taken.
func (w *Waiter) tell(err error) { w.leave(outcome, err) }

// tellPassing is tell for an error that passes by itself.
func (w *Waiter) tellPassing(err error) { w.leave(setback, err) }

func (w *Waiter) leave(n news, err error) {
	w.notice.news, w.notice.err = n, err
	w.wake()
}

// wake ends the sleep of Wait, with or without a notice.
func (w *Waiter) wake() {
	select {
	case w.notice.wake <- struct{}{}:
	default:
	}
}

// reading is one of the server's clock.
type reading struct {
	sent  time.Time // when the acquire was sent whose reply told it
	clock int64     // in µs, not less than it was then; or when the server wrote the grant; 0: not known
	after int64     // [lua.Acquired.After] of that reply
}

func (r reading) known() bool { return r.clock > 0 }

// date returns the moment when the server wrote a message that has just arrived. ok is false when that is not
// certain, or when much of its lease may be over. It trusts neither this machine's clock to agree with the
// server's, nor the time that the message took.
func (r reading) date(m lua.Message) (moment time.Time, ok bool) {
	arrival := time.Now()
	moment = r.sent.Add(time.Duration(m.Now-r.clock) * time.Microsecond)
	ahead := moment.Sub(arrival) // of this machine, which may have been suspended; or the server is another one
	if ahead > 0 {
		moment = arrival
	}
	later := m.Now >= r.clock
	if r.after > 0 { // the sender of the message may have reckoned the clock
		later = m.Token > r.after
	}
	ok = r.known() && later && ahead <= 10*time.Millisecond && arrival.Sub(r.sent) <= time.Minute
	return moment, ok && 2*arrival.Sub(moment) <= time.Duration(m.Lease)*time.Millisecond
}

// question is what must be known of an acquire when its answer arrives.
type question struct {
	sent     time.Time
	round    uint64    // calls of RecheckAll before it
	until    int64     // the moment of the server's clock after which it does nothing; 0: it may run at any time
	deadline time.Time // the same moment here
}
