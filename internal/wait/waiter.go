package wait

import (
	"container/list"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

type state uint8

const (
	waiting state = iota
	granted
	ended
)

// Grant is ownership, as it was learnt.
type Grant struct {
	lua.Owned
	Moment time.Time // not later than the moment Redis wrote it
	Short  bool      // the lease is [ShortLease] at most until it is renewed
}

type outcome struct {
	err     error // nil: granted
	passing bool  // the error passes by itself
}

// Waiter is one tenure: an owner id that is never used again. Its exported fields are set before Acquire.
type Waiter struct {
	Number uint64
	Owner  string
	Lease  time.Duration
	Demand string // what it asks for beside the lease
	Offers bool   // its first command is not an acquire but an offer, which may take what an acquire would not
	Grant  Grant  // set by Acquire

	// guarded by the room's mutex
	state    state
	place    *list.Element // in the room's list, while it is queued
	begun    bool          // an acquire of it has been sent
	entered  bool          // it has been queued
	asking   int           // acquires that are unanswered
	again    bool          // a re-check fell due meanwhile
	leave    bool          // to be cancelled once it is answered
	stray    bool          // an acquire got no answer: it may still arrive
	aborted  bool          // an acquire's answer was not waited for
	unheard  error         // and had been waited for long
	endless  bool          // one that was not answered may run at any time
	latest   time.Time     // when the others may at the latest
	settled  chan struct{} // closed when no acquire is unanswered; nil when nobody waits for that
	heard    bool          // the message of a grant has come
	told     bool          // the outcome is there, and Acquire has not taken it
	outcome  outcome
	ready    chan struct{} // capacity 1: wakes Acquire, if it sleeps
	sequence int64
	asked    time.Time   // when the acquire was sent whose reply said
	clock    int64       // that the server's clock was this, or when it wrote the grant, in µs; 0: not known
	early    lua.Message // a grant that arrived before the reply which dates it
}

// Sequence is the place in the queue from which this waiter was granted: greater than that of all before it,
// and 0 when it was not granted from there, but had the lock by asking.
func (w *Waiter) Sequence() int64 { return w.sequence }

// tell leaves the outcome for Acquire. A grant replaces an error that it has not taken.
func (w *Waiter) tell(o outcome) {
	w.outcome, w.told = o, true
	w.wake()
}

func (w *Waiter) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// contradicted reports whether a reply came to be after the grant of w and says otherwise: then that was
// taken away.
func (w *Waiter) contradicted(reply lua.Acquired) bool {
	return reply.Token > w.Grant.Token || reply.Queued && w.clock > 0 && reply.Now > w.clock
}
