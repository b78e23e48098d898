package wait

import (
	"container/list"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Waiter is a tenure as the queue sees it, under an owner id that the client never uses again. The caller sets the
// exported fields before Wait.
type Waiter struct {
	Number uint64        // unique within the client
	Owner  string        // the owner id in Redis
	Lease  time.Duration // the lease that a reply grants; more than 0
	Demand lua.Demand    // what the waiter asks for beside the lease
	From   string        // the owner id that has what this waiter is to have; empty: the waiter acquires
	Grant  Grant         // set by Wait

	Try    bool // the waiter makes one attempt, and never queues
	Offers bool // the first command is an offer, which may take what an acquire would not
	Opens  bool // the first acquire may be another command than the acquires that follow

	// Proposed says that the token of the grant is no reading of the clock: the client has proposed this token, or a
	// hold that goes on has it.
	Proposed bool

	// Token is the token that an attempt is to get; 0: the next token.
	Token int64

	// Pauses are the pauses between the attempts of a waiter that never queues; nil: the waiter queues.
	Pauses *retry.Backoff

	// Patience is how long an attempt waits for the answer of an owner that may linger, before the attempt asks once
	// more; 0: the attempt does not wait.
	Patience time.Duration

	Place atomic.Int64 // where the waiter stood in a long queue by the last answer; 0: not known

	// The mutex guards what follows.

	state      State
	trace      trace
	due        bool // the client must ask about the waiter: now, or after the answer to an acquire under way (rule 4)
	called     called
	heard      bool          // a message announced the grant, and no reply has denied the grant since
	outlived   bool          // an answer said that the waiter owns the lock, but came after the lease was over
	heardToken int64         // the token in the message that set heard
	unanswered retry.Tally   // acquires
	place      *list.Element // in the list of queued waiters; nil: not queued
	sequence   int64         // see Sequence
	notice     notice
	answer     answer
	copies     copies
	reading    reading
	early      *lua.Message // a grant message that came before the reply which dates it; nil: none
}

// trace is how near to the queue a waiter has come. It never goes back.
type trace uint8

const (
	untraced  trace = iota
	mayQueue        // the client sent an acquire that may have queued the waiter
	wasQueued       // the waiter has been in the queue
)

// Grant is an ownership, as a reply or a message told it.
type Grant struct {
	lua.Owned
	Moment time.Time // not later than the moment when Redis wrote the grant
	Short  bool      // the lease is [ShortLease] at most until its first renewal
}

// Sequence is the place in the queue from which Redis granted w the lock: greater than the places of all waiters
// before w, and 0 if w acquired without queueing.
func (w *Waiter) Sequence() int64 { return w.sequence }

// waits reports whether w can still get its grant.
func (w *Waiter) waits() bool { return w.state.waits() }

// hasGrant reports whether w has got its grant, and the grant is not over.
func (w *Waiter) hasGrant() bool { return w.state == Granted || w.state.Owns() }

// takeDue reports whether a question is due. If so, the caller must send it.
func (w *Waiter) takeDue() bool {
	due := w.due
	w.due = false
	return due
}

// isDue reports whether a question is due, and no answer is on its way: after an answer, the goroutine that takes it
// asks.
func (w *Waiter) isDue() bool { return w.due && w.unanswered.N() == 0 }

// contradictedBy reports whether Redis wrote the reply after the grant of w, and the reply denies this grant. If so,
// Redis has revoked the grant.
func (w *Waiter) contradictedBy(reply lua.Acquired) bool {
	if reply.Queued && reply.After > 0 {
		return reply.After >= w.Grant.Token
	}
	return reply.Token > w.Grant.Token || reply.Queued && w.reading.known() && reply.Now > w.reading.clock
}

// notice is what other goroutines tell Wait, and how they wake it.
type notice struct {
	news    news          // the kind of a notice that Wait has not taken yet
	err     error         // nil: granted
	silence error         // Redis had been silent for long when the context of Wait ended
	wake    chan struct{} // capacity 1; nil while Wait does not sleep
}

// news is the kind of a notice.
type news uint8

const (
	noNews  news = iota
	outcome      // a grant, or an error that does not pass
	setback      // an error that passes by itself
)

// tell leaves a notice for Wait. The notice of a grant replaces an error that Wait has not taken.
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

// reading is a reading of the server's clock.
type reading struct {
	sent  time.Time // when the client sent the question whose answer told the clock
	clock int64     // in µs: at least the server's clock at sent; or when the server wrote the grant; 0: not known
	after int64     // [lua.Acquired.After] of that answer
}

func (r reading) known() bool { return r.clock > 0 }

// date returns the moment when the server wrote m, which has just arrived. ok is false if that moment is not certain,
// or if much of the lease may be over. date trusts neither that the two machines' clocks agree, nor the time that the
// message took.
func (r reading) date(m lua.Message) (moment time.Time, ok bool) {
	arrival := time.Now()
	moment = r.sent.Add(time.Duration(m.Now-r.clock) * time.Microsecond)
	ahead := moment.Sub(arrival) // of this machine's clock: the machine was suspended, or the server is another one
	if ahead > 0 {
		moment = arrival
	}
	later := m.Now >= r.clock
	if r.after > 0 { // the sender may have reckoned m.Now, so the token decides
		later = m.Token > r.after
	}
	ok = r.known() && later && ahead <= 10*time.Millisecond && arrival.Sub(r.sent) <= time.Minute
	return moment, ok && 2*arrival.Sub(moment) <= time.Duration(m.Lease)*time.Millisecond
}

// question is what the client must know of an acquire when its answer arrives.
type question struct {
	sent     time.Time
	round    uint64    // how many calls of RecheckAll came before the acquire
	until    int64     // after this moment of the server's clock the acquire does nothing; 0: it may run at any time
	deadline time.Time // the same moment by this machine's clock
}
