package wait

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// ask sends the acquire of w that the caller has counted. If the answer calls for another acquire, ask sends that
// acquire too.
func (q *Waiters) ask(ctx context.Context, w *Waiter, mode lua.Mode) {
	for {
		a := q.question(ctx, w, mode)
		reply, err := q.server.Ask(ctx, w, mode, a.until)
		if !q.answered(ctx, w, a, reply, err) {
			return
		}
		if mode != lua.Try { // an attempt must not queue with its second question either
			mode = lua.Again
		}
	}
}

func (q *Waiters) question(ctx context.Context, w *Waiter, mode lua.Mode) question {
	q.mu.Lock()
	a := question{round: q.rounds}
	if w != nil && mode != lua.Try {
		w.trace = max(w.trace, mayQueue)
	}
	q.mu.Unlock()
	a.sent = time.Now()
	if deadline, ok := ctx.Deadline(); ok && mode == lua.Try && w.Token == 0 {
		a.deadline, a.until = deadline, q.server.Clock(deadline)
	}
	return a
}

// answered takes the answer to an acquire: a reply or an error. It reports whether the caller must send another
// acquire.
func (q *Waiters) answered(ctx context.Context, w *Waiter, a question, reply lua.Acquired, err error) bool {
	ended := err != nil && ctx.Err() != nil
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		w.failed(ended, a, err)
	}
	switch {
	case w.waits():
		if !ended && q.heed(w, a, reply, err) {
			return true
		}
	case w.hasGrant() && err == nil && w.contradictedBy(reply):
		w.copies.late, w.copies.endless = stray, true // the reply may say that w is queued
		q.server.Revoked(w, max(reply.Token, w.Grant.Token))
	}
	if !w.waits() && q.queued.Len() > 0 {
		q.arm(0) // w knew when the holder's lease ends, but waits no more: the oldest waiter asks now
	}
	if w.unanswered.Add(-1); w.unanswered.N() == 0 {
		q.lastAnswered(w)
	}
	return false
}

// lastAnswered runs once no acquire of w is unanswered. If w is leaving, its cancel begins now.
func (q *Waiters) lastAnswered(w *Waiter) {
	if w.state == Leaving {
		// Rule 2: no caller wants what the acquires took or queued. Only now is it certain that the cancel overtakes
		// no acquire.
		q.cancel(w)
	}
}

// Answered reports whether no acquire of w is unanswered. Only then may the client send the release of w (rule 2).
func (q *Waiters) Answered(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.unanswered.N() == 0
}

// AwaitAnswers returns nil once no acquire of w is unanswered, or the cause when ctx ends.
func (q *Waiters) AwaitAnswers(ctx context.Context, w *Waiter) error {
	q.mu.Lock()
	answered := w.unanswered.None()
	q.mu.Unlock()
	return retry.Await(ctx, answered)
}

// heed takes the answer to an acquire of w, which still waits. It reports whether the caller must send another
// acquire.
func (q *Waiters) heed(w *Waiter, a question, reply lua.Acquired, err error) bool {
	switch {
	case err != nil:
		q.heedError(w, a, err)
	case reply.Token > 0:
		return q.heedGrant(w, a, reply)
	case reply.Late:
		w.tell(errLate)
	case reply.Refused != nil:
		if w.state == Queued {
			q.arm(0) // the next waiter may be refused as well
		}
		q.refuse(w, reply.Refused)
	case reply.Queued:
		return q.heedQueued(w, a, reply)
	case reply.Lingers:
		w.tell(errLingers)
	default:
		w.tell(ErrBusy)
	}
	return false
}

// heedError takes the error of an acquire. If the error passes by itself, a queued w stays queued: RecheckAll follows
// once Redis is back.
func (q *Waiters) heedError(w *Waiter, a question, err error) {
	passing := lua.Passing(err)
	if passing {
		q.server.Failed(err, a.sent)
	}
	switch {
	case w.state != Queued && passing:
		w.tellPassing(err)
	case w.state != Queued:
		w.tell(err)
	case !passing:
		q.refuse(w, err)
	}
}

func (q *Waiters) heedGrant(w *Waiter, a question, reply lua.Acquired) (again bool) {
	if !time.Now().Before(a.sent.Add(w.Lease)) {
		w.outlived = true
		return true // the answer took longer than the lease: ask whether w still owns the lock
	}
	if w.state == Queued && !w.heard && q.queued.Len() > 1 {
		// w was queued, and had to ask for its grant. If the entry of w was gone, the entries of the other waiters
		// here are gone too: the next waiter's question will tell.
		q.arm(0)
	}
	if !w.heard || reply.Token != w.heardToken {
		w.sequence = 0 // w may have lost its place in between, or the grant that a message announced
	}
	w.reading.clock = 0
	q.grant(w, Grant{Owned: reply.Owned, Moment: a.sent})
	return false
}

func (q *Waiters) heedQueued(w *Waiter, a question, reply lua.Acquired) (again bool) {
	w.heard = false // this reply denies the grant that a message announced
	w.Place.Store(reply.Place)
	lost := false // w lost its entry, and has a new entry
	if reply.Sequence > 0 {
		lost = w.state == Queued
		w.sequence = reply.Sequence
	}
	if w.state != Queued {
		q.Become(w, Queued)
	}
	w.reading = reading{sent: a.sent, clock: reply.Now, after: reply.After}
	q.arm(reply.Ends)
	if lost && (q.asks != forAll || q.queued.Front() == w.place) { // most likely the other entries are lost as well
		q.allDue(w)
		q.beginAsking(forAll)
	}
	if w.takeDue() {
		return true
	}
	if a.round != q.rounds { // rule 4: another question fell due while this question was unanswered
		w.reading.clock = 0
		w.due = true
		q.beginAsking(forSome)
		return false
	}
	if w.early != nil {
		q.learn(w, *w.early)
		return w.takeDue() // if learn doubts the message, w asks again
	}
	return false
}

func (q *Waiters) grant(w *Waiter, g Grant) {
	q.Become(w, Granted)
	q.hints.Proved()
	w.Grant = g
	w.tell(nil)
}

// refuse ends the wait of w with an error.
func (q *Waiters) refuse(w *Waiter, err error) {
	q.Become(w, Refused)
	w.tell(err)
}

// Granted takes a grant message. It returns false if no waiter can use the grant, as when the tenure is over: then
// the caller must give the grant back.
func (q *Waiters) Granted(w *Waiter, m lua.Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case w.waits():
		q.learn(w, m)
		if w.state == Granted && w.unanswered.N() > 0 {
			w.sequence = 0 // the answer may say that w had lost its place, and was queued again
		}
		return true
	case w.hasGrant(): // the same or an older grant; a newer grant is for an entry that a stray copy left
		return m.Token <= w.Grant.Token
	default:
		return w.unanswered.N() > 0 // the cancel that follows gives the grant back
	}
}

// strange is how far the token in a message may be ahead of the tokens that the waiter knows of the server: as many
// tokens as the server hands out in a minute at full speed.
const strange = int64(time.Minute / time.Microsecond)

// learn grants w what a message says, or asks Redis to confirm the message. learn asks if it cannot date the message,
// or if the token is strange. It also asks about permits without a lease, because no renewal asks about them later.
//
// Trust counts from the moment when Redis wrote the grant. The reply that queued the waiter has a reading of the same
// clock. So learn knows that moment, and trusts neither this machine's clock nor the time that the message took.
func (q *Waiters) learn(w *Waiter, m lua.Message) {
	if !w.reading.known() && w.unanswered.N() > 0 && !w.due {
		early := m // Redis sent m after the reply, but the client read m first
		w.early = &early
		return
	}
	w.early, w.heard, w.heardToken = nil, true, m.Token
	if m.Family == lua.Plain || m.Token > max(m.Now, w.sequence)+strange {
		q.recheck(w)
		return
	}
	moment, ok := w.reading.date(m)
	if !ok {
		q.recheck(w)
		return
	}
	w.reading.clock = m.Now
	q.grant(w, Grant{Owned: m.Owned, Moment: moment, Short: true})
}
