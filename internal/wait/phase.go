package wait

import (
	"fmt"

	"github.com/latchkey-go/latchkey/internal/invariant"
)

// phase is how far a waiter has come. Only [Waiters.become] changes it. These are the legal transitions, and
// no other:
//
//	from        to          when
//	idle        asking      its first acquire is sent
//	idle        cancelling  its caller gives up before that, and its first command was to be an offer
//	idle        gone        its caller gives up before that
//	asking      queued      a reply says so
//	asking      granted     a reply says so
//	asking      refused     a reply says so
//	asking      leaving     its caller gives up while an acquire is unanswered
//	asking      cancelling  its caller gives up, and an acquire that got no answer may still run
//	asking      gone        its caller gives up, and every acquire was answered with a no
//	queued      granted     a message or a reply says so
//	queued      refused     a reply says so, or a re-check fails for good
//	queued      leaving     its caller gives up while a re-check is unanswered
//	queued      cancelling  its caller gives up
//	granted     leaving     the grant is over, or unwanted, while an acquire is unanswered
//	granted     cancelling  the grant is unwanted; or it is over, and a copy of an acquire may still run
//	granted     gone        the grant is over
//	refused     leaving     its caller has the error, and an acquire is unanswered
//	refused     cancelling  its caller has the error, and something of it may be in Redis
//	refused     gone        its caller has the error
//	leaving     cancelling  the last acquire was answered
//	cancelling  gone        the cancel was answered, and no copy of an acquire can run any more
type phase uint8

const (
	idle       phase = iota // nothing was sent
	asking                  // acquires were sent, and none has said that it is queued
	queued                  // it is in the queue, as far as is known
	granted                 // it owns the lock, as far as the waiter is concerned
	refused                 // the wait ended with an error, and its caller is being told
	leaving                 // it is to be cancelled once no acquire is unanswered
	cancelling              // cancels are sent
	gone                    // nothing of it is left in Redis
)

var phaseNames = [...]string{"idle", "asking", "queued", "granted", "refused", "leaving", "cancelling", "gone"}

func (p phase) String() string { return phaseNames[p] }

// phases is a set.
type phases uint16

func setOf(all ...phase) (s phases) {
	for _, p := range all {
		s |= 1 << p
	}
	return s
}

func (s phases) has(p phase) bool { return s>>p&1 == 1 }

// following are the phases that may follow each.
var following = [...]phases{
	idle:       setOf(asking, cancelling, gone),
	asking:     setOf(queued, granted, refused, leaving, cancelling, gone),
	queued:     setOf(granted, refused, leaving, cancelling),
	granted:    setOf(leaving, cancelling, gone),
	refused:    setOf(leaving, cancelling, gone),
	leaving:    setOf(cancelling),
	cancelling: setOf(gone),
	gone:       0,
}

// become changes the phase of w, and keeps the list of those that are queued. The mutex is held.
func (q *Waiters) become(w *Waiter, next phase) {
	if invariant.Checked && !following[w.phase].has(next) {
		panic(fmt.Sprintf("wait: %s was %v and cannot become %v", w.Owner, w.phase, next))
	}
	if w.phase == queued {
		q.queued.Remove(w.place)
		w.place = nil
	}
	if w.phase = next; next == queued {
		w.place, w.wasQueued = q.queued.PushBack(w), true
	}
	if !w.waits() {
		w.recheckDue = false
	}
}
