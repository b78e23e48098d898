package wait

import (
	"fmt"

	"github.com/latchkey-go/latchkey/internal/invariant"
)

// State is how far a tenure has come: from the first command that the client sends with its id until nothing of the
// tenure is left in Redis. Only [Waiters.Become] changes a state, with the mutex. No other transitions than these are
// legal:
//
//	from        to          when
//	idle        asking      the client sends the first acquire
//	idle        cancelling  the caller gives up before the first acquire, and the first command was to be an offer
//	idle        over        the caller gives up before the first acquire
//	asking      queued      a reply says so
//	asking      granted     a reply says so
//	asking      refused     a reply says so
//	asking      leaving     the caller gives up while an acquire is unanswered
//	asking      cancelling  the caller gives up, and an acquire that got no answer may still run
//	asking      over        the caller gives up, and Redis has answered every acquire with a no
//	queued      granted     a message or a reply says so
//	queued      refused     a reply says so, or a re-check fails with an error that does not pass
//	queued      leaving     the caller gives up while a re-check is unanswered
//	queued      cancelling  the caller gives up
//	granted     held        the caller gets the first hold
//	granted     leaving     no caller wants the grant, and an acquire is unanswered
//	granted     cancelling  no caller wants the grant
//	granted     over        the caller keeps the grant, without a hold
//	refused     leaving     the caller has the error, and an acquire is unanswered
//	refused     cancelling  the caller has the error, and Redis may have something of the tenure
//	refused     over        the caller has the error
//	held        parked      the last hold has ended, and the line is empty
//	held        offered     the last hold has ended, and the next in line must let other processes go first
//	held        releasing   the last hold has ended
//	held        leaving     the tenure was lost, or is unwanted, while an acquire is unanswered
//	held        cancelling  the tenure was lost, or is unwanted, and Redis may have something of it
//	held        over        the tenure was lost
//	parked      held        the next goroutine that comes gets a hold
//	parked      offered     the next goroutine that comes must let other processes go first
//	parked      releasing   other clients want the lock, or the time to linger is over
//	parked      leaving     the tenure was lost, while an acquire is unanswered
//	parked      cancelling  the tenure was lost, and a copy of an acquire may still run
//	parked      over        the tenure was lost
//	offered     leaving     Redis has answered the offer, or the tenure is lost or unwanted; an acquire is unanswered
//	offered     cancelling  the tenure is unwanted; or as in the next row, and a copy of an acquire may still run
//	offered     over        Redis has answered the offer, or the tenure was lost
//	releasing   leaving     Redis has answered the release, or the release matters no more; an acquire is unanswered
//	releasing   cancelling  the release was answered or matters no more, and a copy of an acquire may still run
//	releasing   over        the release was answered or matters no more, and no copy can run any more
//	leaving     cancelling  no acquire is unanswered any more
//	cancelling  over        Redis has answered the cancel, and no copy of an acquire can run any more
type State uint8

// The states.
const (
	Idle       State = iota // the client has sent nothing
	Asking                  // acquires were sent, and no reply says that the tenure is queued
	Queued                  // the tenure is in the queue, as far as the client knows
	Granted                 // the tenure owns the lock, or permits, and its caller is about to hear that
	Refused                 // the wait ended with an error, and the caller is about to hear it
	Held                    // the tenure has one hold, or several
	Parked                  // the tenure has no hold, and the next goroutine that comes takes it
	Offered                 // the tenure has no hold: the next goroutine in line gives it up for a fresh id
	Releasing               // the tenure has no hold, and the client sends a release until Redis answers
	Leaving                 // to be cancelled once no acquire is unanswered
	Cancelling              // the client sends cancels
	Over                    // nothing of the tenure is left in Redis
)

var stateNames = [...]string{
	"idle", "asking", "queued", "granted", "refused", "held", "parked", "offered", "releasing", "leaving", "cancelling", "over",
}

func (s State) String() string { return stateNames[s] }

// states is a set.
type states uint16

func setOf(all ...State) (s states) {
	for _, one := range all {
		s |= 1 << one
	}
	return s
}

func (s states) has(one State) bool { return s>>one&1 == 1 }

// following has, for each state, the states that may follow it.
var following = [...]states{
	Idle:       setOf(Asking, Cancelling, Over),
	Asking:     setOf(Queued, Granted, Refused, Leaving, Cancelling, Over),
	Queued:     setOf(Granted, Refused, Leaving, Cancelling),
	Granted:    setOf(Held, Leaving, Cancelling, Over),
	Refused:    setOf(Leaving, Cancelling, Over),
	Held:       setOf(Parked, Offered, Releasing, Leaving, Cancelling, Over),
	Parked:     setOf(Held, Offered, Releasing, Leaving, Cancelling, Over),
	Offered:    setOf(Leaving, Cancelling, Over),
	Releasing:  setOf(Leaving, Cancelling, Over),
	Leaving:    setOf(Cancelling),
	Cancelling: setOf(Over),
	Over:       0,
}

// waits reports whether a tenure in this state can still get its grant.
func (s State) waits() bool { return s <= Queued }

// Owns reports whether, as far as the process knows, it has the lock: no command or clock has said that the tenure is
// over.
func (s State) Owns() bool { return s >= Held && s <= Releasing }

// State returns how far w has come. The caller holds the mutex.
func (w *Waiter) State() State { return w.state }

// Become changes the state of w, and updates the list of queued waiters. The caller holds the mutex.
func (q *Waiters) Become(w *Waiter, next State) {
	if invariant.Checked && !following[w.state].has(next) {
		panic(fmt.Sprintf("wait: %s was %v and cannot become %v", w.Owner, w.state, next))
	}
	if w.state == Queued {
		q.queued.Remove(w.place)
		w.place = nil
	}
	if w.state = next; next == Queued {
		w.place, w.trace = q.queued.PushBack(w), wasQueued
	}
	if !w.waits() {
		w.due = false
	}
}
