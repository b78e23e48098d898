package wait

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// ask sends an acquire for w, and another while its answer asks for one.
func (r *Room) ask(ctx context.Context, w *Waiter, mode lua.Mode) {
	for {
		r.mu.Lock()
		round := r.rounds
		r.mu.Unlock()
		q := question{sent: time.Now(), round: round}
		until := int64(0)
		if deadline, ok := ctx.Deadline(); ok && mode == lua.Try {
			q.deadline, until = deadline, r.server.Clock(deadline)
		}
		q.bounded = until > 0
		reply, err := r.server.Acquire(ctx, w, mode, until)
		if !r.answered(ctx, w, q, reply, err) {
			return
		}
		mode = lua.Again
	}
}

// question is what must be known of an acquire when its answer arrives.
type question struct {
	sent     time.Time
	round    uint64 // of RecheckAll
	bounded  bool   // it does nothing in Redis after the deadline
	deadline time.Time
}

// answered takes the reply to an acquire and reports whether another must be sent.
func (r *Room) answered(ctx context.Context, w *Waiter, q question, reply lua.Acquired, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		w.aborted = true // Acquire sees the same and abandons w
		if silence := Silence(q.sent); silence != nil {
			w.unheard = silence
			w.stray = true // the connection may be broken, and a copy of it under way
		}
	case lua.Classify(err) == lua.NoAnswer:
		w.stray = true
		w.sequence = 0 // it may have lost its place, and been queued again
	}
	if err != nil {
		w.endless = w.endless || !q.bounded
		if q.deadline.After(w.latest) {
			w.latest = q.deadline
		}
	}
	switch {
	case w.state == waiting && (err == nil || ctx.Err() == nil) && r.waits(w, q, reply, err):
		return true
	case w.state == granted && err == nil && w.contradicted(reply):
		w.stray, w.endless = true, true // the reply may say that it is queued
		r.server.Refuse(w, max(reply.Token, w.Grant.Token))
	}
	if w.state != waiting && r.waiters.Len() > 0 {
		r.arm(0) // it has left, or holds: what it was told is nobody's now, so the next one asks
	}
	if w.asking--; w.asking > 0 {
		return false
	}
	if w.settled != nil {
		close(w.settled)
		w.settled = nil
	}
	if w.leave {
		// Rule 2: whatever the acquire took or queued, nobody wants it. Only now is it certain that the cancel does
		// not overtake it.
		w.leave = false
		r.cancel(w)
	}
	return false
}

// waits handles the reply for a waiter that still waits.
func (r *Room) waits(w *Waiter, q question, reply lua.Acquired, err error) (again bool) {
	switch {
	case err != nil && w.place != nil:
		// It stays in the queue; RecheckAll comes when Redis is back.
		if lua.Passing(err) {
			r.server.Failed(err, q.sent)
		} else {
			r.finish(w, outcome{err: err})
		}
	case err != nil:
		passing := lua.Passing(err)
		if passing {
			r.server.Failed(err, q.sent)
		}
		w.tell(outcome{err: err, passing: passing})
	case reply.Token > 0:
		if !time.Now().Before(q.sent.Add(w.Lease)) {
			return true // the answer took longer than the lease: ask whether it is still true
		}
		if w.place != nil && !w.heard && r.waiters.Len() > 1 {
			// It was queued and had to ask. If that is because its entry was gone, so are those of the others here;
			// the next one's question will tell.
			r.arm(0)
		}
		if !w.heard {
			w.sequence = 0 // it may have lost its place in between
		}
		w.clock = 0
		r.grant(w, Grant{Owned: reply.Owned, Moment: q.sent})
	case reply.Late:
		w.tell(outcome{err: errLate})
	case reply.Refused != nil:
		if w.place != nil {
			r.arm(0) // the next one may be no better off
		}
		r.finish(w, outcome{err: reply.Refused})
	case !reply.Queued:
		w.tell(outcome{err: ErrBusy})
	default:
		w.heard = false // what it was told by message is not so
		lost := reply.Sequence > 0 && w.place != nil
		if w.place == nil {
			w.place, w.entered = r.waiters.PushBack(w), true
		}
		if reply.Sequence > 0 {
			w.sequence = reply.Sequence
		}
		w.asked, w.clock = q.sent, reply.Now
		r.arm(reply.Ends)
		if lost && r.rounding == 0 { // and so are, very likely, the entries of the others here
			r.rounding++
			r.server.Go(func() { r.recheck(func(other *Waiter) bool { return other != w }) })
		}
		if w.again || q.round != r.rounds { // rule 4: a re-check fell due while this was unanswered
			w.again = false
			return true
		}
		if w.early.Token > 0 {
			r.learn(w, w.early)
			if w.again { // it has to be confirmed, by a question after this one
				w.again = false
				return true
			}
		}
	}
	return false
}

func (r *Room) grant(w *Waiter, g Grant) {
	w.again = false
	r.settle(w, granted)
	w.Grant = g
	w.tell(outcome{})
}

func (r *Room) finish(w *Waiter, o outcome) {
	w.again = false
	r.settle(w, ended)
	w.tell(o)
}

func (r *Room) settle(w *Waiter, s state) {
	w.state = s
	if w.place != nil {
		r.waiters.Remove(w.place)
		w.place = nil
	}
}

// Granted takes a grant message. It reports false when the grant is for nobody, and must be released: the
// tenure is over.
func (r *Room) Granted(w *Waiter, m lua.Message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch w.state {
	case granted:
		return m.Token <= w.Grant.Token // the same grant again or one before it; else one for an entry that a stray copy left behind
	case ended:
		return w.leave || w.asking > 0 // the cancel that follows gives it back
	}
	r.learn(w, m)
	if w.state == granted && w.asking > 0 {
		w.sequence = 0 // the answer might say that it had lost its place, and was queued again
	}
	return true
}

// strange is how far a token in a message may be ahead of what its waiter knows of its server: a minute of
// tokens at full speed.
const strange = int64(time.Minute / time.Microsecond)

// learn makes a grant message a grant, or sees to its confirmation. Redis itself is asked when the message
// cannot be dated, when its token is strange, and when nothing would ever ask again: permits without a lease.
// Trust counts from the moment the grant was written. The reply that queued the waiter carries the same
// clock, so that moment is known without trusting the client's clock or the time the message took.
func (r *Room) learn(w *Waiter, m lua.Message) {
	if w.clock == 0 && w.asking > 0 && !w.again {
		w.early = m // published after, read before
		return
	}
	w.early, w.heard = lua.Message{}, true
	if m.Family == lua.Plain || m.Token > max(m.Now, w.sequence)+strange {
		r.recheckNow(w)
		return
	}
	arrival := time.Now()
	moment := w.asked.Add(time.Duration(m.Now-w.clock) * time.Microsecond)
	ahead := moment.Sub(arrival) // the clocks disagree: this machine may have been suspended, or the server is another one
	if ahead > 0 {
		moment = arrival
	}
	if w.clock == 0 || ahead > 10*time.Millisecond || m.Now < w.clock || arrival.Sub(w.asked) > time.Minute || 2*arrival.Sub(moment) > time.Duration(m.Lease)*time.Millisecond {
		r.recheckNow(w) // it may have expired already, or soon will: confirm first
		return
	}
	w.clock = m.Now
	r.grant(w, Grant{Owned: m.Owned, Moment: moment, Short: true})
}
