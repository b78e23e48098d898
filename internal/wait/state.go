package wait

import (
	"fmt"

	"github.com/latchkey-go/latchkey/internal/invariant"
)

// State is how far a tenure has come: from the first command that is sent with its id until nothing of it is
// left in Redis. Only [Waiters.Become] changes it, with the mutex. These are the legal transitions, and no
// other:
//
//	from        to          when
//	idle        asking      its first acquire is sent
//	idle        cancelling  its caller gives up before that, and its first command was to be an offer
//	idle        over        its caller gives up before that
//	asking      queued      a reply says so
//	asking      granted     a reply says so
//	asking      refused     a reply says so
//	asking      leaving     its caller gives up while an acquire is unanswered
//	asking      cancelling  its caller gives up, and an acquire that got no answer may still run
//	asking      over        its caller gives up, and every acquire was answered with a no
//	queued      granted     a message or a reply says so
//	queued      refused     a reply says so, or a re-check fails for good
//	queued      leaving     its caller gives up while a re-check is unanswered
//	queued      cancelling  its caller gives up
//	granted     held        its caller has its first hold
//	granted     leaving     the grant is unwanted, while an acquire is unanswered
//	granted     cancelling  the grant is unwanted
//	granted     over        the grant is the caller's, without a hold
//	refused     leaving     its caller has the error, and an acquire is unanswered
//	refused     cancelling  its caller has the error, and something of it may be in Redis
//	refused     over        its caller has the error
//	held        parked      its last hold has ended, and the line is empty
//	held        offered     its last hold has ended, and the next in line must let other processes go first
//	held        releasing   its last hold has ended
//	held        leaving     it was lost, or is unwanted, while an acquire is unanswered
//	held        cancelling  it was lost, or is unwanted, and something of it may be in Redis
//	held        over        it was lost
//	parked      held        the next one that comes has a hold
//	parked      offered     the next one that comes must let other processes go first
//	parked      releasing   others want it, or its time is over
//	parked      leaving     it was lost, while an acquire is unanswered
//	parked      cancelling  it was lost, and a copy of an acquire may still run
//	parked      over        it was lost
//	offered     leaving     the offer was answered, or it is lost or unwanted, while an acquire is unanswered
//	offered     cancelling  it is unwanted; or as above, and a copy of an acquire may still run
//	offered     over        the offer was answered, or it was lost
//	releasing   leaving     the release was answered, or matters no more, while an acquire is unanswered
//	releasing   cancelling  the same, and a copy of an acquire may still run
//	releasing   over        the same, and none can run any more
//	leaving     cancelling  the last acquire was answered
//	cancelling  over        the cancel was answered, and no copy of an acquire can run any more
type State uint8

// The states.
const (
	Idle       State = iota // nothing was sent
	Asking                  // acquires were sent, and none has said that it is queued
	Queued                  // it is in the queue, as far as is known
	Granted                 // it owns the lock, or permits, and its caller is being told
	Refused                 // the wait ended with an error, and its caller is being told
	Held                    // somebody has a hold of it, or several have
	Parked                  // it has no hold, and the next goroutine that comes takes it
	Offered                 // it has no hold: it is left to the next in line, which gives it up for a fresh id
	Releasing               // it has no hold, and a release is sent until Redis answers
	Leaving                 // it is to be cancelled once no acquire is unanswered
	Cancelling              // cancels are sent
	Over                    // nothing of it is left in Redis
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

// following are the states that may follow each.
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

// waits reports whether it can still be granted.
func (s State) waits() bool { return s <= Queued }

// Owns reports whether the lock is the process's, as far as it knows, and no command or clock has said that
// it is over.
func (s State) Owns() bool { return s >= Held && s <= Releasing }

// State is how far w has come. The mutex is held.
func (w *Waiter) State() State { return w.state }

// Become changes the state of w, and keeps the list of queued waiters. The mutex is held.
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
