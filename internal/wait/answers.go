package wait

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// ask sends an acquire for w, which was counted, and another while the answer asks for one.
func (q *Waiters) ask(ctx context.Context, w *Waiter, mode lua.Mode) {
	for {
		a := q.question(ctx, w, mode)
		reply, err := q.server.Ask(ctx, w, mode, a.until)
		if !q.answered(ctx, w, a, reply, err) {
			return
		}
		if mode != lua.Try { // who only tries is not queued by the second question either
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

// answered takes the answer to an acquire, a reply or an error. It reports whether another must be sent.
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
		w.copies.late, w.copies.endless = stray, true // the reply may say that it is queued
		q.server.Revoked(w, max(reply.Token, w.Grant.Token))
	}
	if !w.waits() && q.queued.Len() > 0 {
		q.arm(0) // w knew when the lease ends, and waits no more: the oldest waiter asks now
	}
	if w.unanswered.Add(-1); w.unanswered.N() == 0 {
		q.lastAnswered(w)
	}
	return false
}

// lastAnswered does what had to wait until no acquire of w was unanswered.
func (q *Waiters) lastAnswered(w *Waiter) {
	if w.state == Leaving {
		// Rule 2: what the acquires took or queued is not wanted. Only now it is certain that the cancel does not
		// overtake them.
		q.cancel(w)
	}
}

// Answered reports whether no acquire of w is unanswered: only then its release may be sent (rule 2).
func (q *Waiters) Answered(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.unanswered.N() == 0
}

// AwaitAnswers returns nil when that is so, or the cause when ctx ends.
func (q *Waiters) AwaitAnswers(ctx context.Context, w *Waiter) error {
	q.mu.Lock()
	answered := w.unanswered.None()
	q.mu.Unlock()
	return retry.Await(ctx, answered)
}

// heed takes the answer for a w that still waits. It reports whether another acquire must be sent.
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
			q.arm(0) // the next one may be no better off
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

// heedError leaves a w that is queued where it is, if the error passes: RecheckAll comes when Redis is back.
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
		return true // the answer took longer than the lease: ask whether it is still true
	}
	if w.state == Queued && !w.heard && q.queued.Len() > 1 {
		// It was queued and had to ask. If its entry was gone, the other waiters' entries here are gone too: the
		// next one's question will tell.
		q.arm(0)
	}
	if !w.heard || reply.Token != w.heardToken {
		w.sequence = 0 // it may have lost its place in between, or what it was told of
	}
	w.reading.clock = 0
	q.grant(w, Grant{Owned: reply.Owned, Moment: a.sent})
	return false
}

func (q *Waiters) heedQueued(w *Waiter, a question, reply lua.Acquired) (again bool) {
	w.heard = false // what it was told by message is not so
	w.Place.Store(reply.Place)
	lost := false // its entry, for which it has a new one
	if reply.Sequence > 0 {
		lost = w.state == Queued
		w.sequence = reply.Sequence
	}
	if w.state != Queued {
		q.Become(w, Queued)
	}
	w.reading = reading{sent: a.sent, clock: reply.Now, after: reply.After}
	q.arm(reply.Ends)
	if lost && (q.asks != forAll || q.queued.Front() == w.place) { // and so are, very likely, the entries of the others
		q.allDue(w)
		q.beginAsking(forAll)
	}
	if w.takeDue() {
		return true
	}
	if a.round != q.rounds { // rule 4: a question fell due while this one was unanswered
		w.reading.clock = 0
		w.due = true
		q.beginAsking(forSome)
		return false
	}
	if w.early != nil {
		q.learn(w, *w.early)
		return w.takeDue() // it has to be confirmed, by a question after this one
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

// Granted takes a grant message. It reports false when the grant has no waiter and must be given back: the
// tenure is over.
func (q *Waiters) Granted(w *Waiter, m lua.Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case w.waits():
		q.learn(w, m)
		if w.state == Granted && w.unanswered.N() > 0 {
			w.sequence = 0 // the answer might say that it had lost its place, and was queued again
		}
		return true
	case w.hasGrant(): // the same grant, or one before it; else one for an entry that a stray copy left
		return m.Token <= w.Grant.Token
	default:
		return w.unanswered.N() > 0 // the cancel that follows gives it back
	}
}

// strange is how far a token in a message may be ahead of the tokens that its waiter knows of the server: a minute
// of them at full speed.
const strange = int64(time.Minute / time.Microsecond)

// learn makes a grant of a message, or has it confirmed. Redis is asked when the message cannot be dated, and
// when its token is strange. It is asked for permits without a lease as well, since no renewal asks for them
// later.
//
// Trust counts from the moment the grant was written. The reply that queued the waiter has a reading of the
// same clock. So that moment is known without trusting this machine's clock, or the time the message took.
func (q *Waiters) learn(w *Waiter, m lua.Message) {
	if !w.reading.known() && w.unanswered.N() > 0 && !w.due {
		early := m // it was published after the reply, and read before it
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
