package grant

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// The local hand-off: how rlock passes the lock on inside the process.
//
// The goroutines that want the lock stand in the line of the queue. The one at its head is the delegate: it
// alone queues in Redis. From then on the turn of the line goes with the lock. Unlock passes both to the next
// in line, whose turn in the tenure begins with the same step: it holds under the same owner id with the next
// of its reserved tokens. No command is sent.
//
// That must not go on for ever while other processes wait. It ends when the budget is used up, or the tokens
// are, and from time to time, as the message that others wait may be lost. Then the next in line offers the
// lock, under a fresh id. One script gives it to the head of the queue and appends the fresh id, or makes the
// fresh id the owner, with new tokens. Until that is answered no goroutine here holds. It can be repeated until
// then, because the old id is over with the first copy that arrives.
//
// A delegate that gives up leaves its place in the queue to the next in line, who goes on with it.

// How many times the span of the budget a process hands off locally without an offer, when it does not know
// of others that wait. Processes of Redisson do not say that they do.
const (
	unasked               = 4
	unaskedBesideRedisson = 1
)

func (q *Queue) unasked() time.Duration {
	if q.takesTurns() {
		return unaskedBesideRedisson
	}
	return unasked
}

// handOffs are what a tenure must know to hand off locally. They are guarded by the mutex of its queue.
type handOffs struct {
	token          int64     // of the last turn
	reserved       int64     // tokens for further turns
	contendedSince time.Time // since when it is known that other processes wait; zero: not known
	handed         int       // turns that began after that
}

// due reports whether the lock must be offered to other processes. first is the time when its tenure began.
// until is the time when the tenure stops lingering; zero when it does not linger. unasked counts spans of
// the budget: the lock is offered after so long although no other waiter is known.
func (o *handOffs) due(now, first, until time.Time, terms *terms.Terms, unasked time.Duration) bool {
	switch {
	case o.reserved == 0:
		return true
	case o.contendedSince.IsZero():
		return now.Sub(first) >= unasked*terms.Span && !now.Before(until)
	default:
		return o.handed >= terms.Holds || now.Sub(o.contendedSince) >= terms.Span
	}
}

// next returns the token of another turn.
func (o *handOffs) next() int64 {
	o.token++
	o.reserved--
	if !o.contendedSince.IsZero() {
		o.handed++
	}
	return o.token
}

// contend notes that other processes wait.
func (t *tenure) contend() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.contendNow()
}

// contendNow is contend with the mutex held.
func (t *tenure) contendNow() {
	if t.handOffs.contendedSince.IsZero() {
		t.handOffs.contendedSince = time.Now()
	}
	t.tellWanted()
}

// stepDown ends the last turn of a tenure that is its holder's alone. It reports whether the next in line has
// the tenure now, or it is parked for the next one that comes. Otherwise it is to be released. The mutex is
// held: so a message that others want the lock finds it held, parked, or left to the next.
func (t *tenure) stepDown(now time.Time) (goesOn bool) {
	t.queue.locked()
	hadTurn := t.hasTurn
	t.turn, t.hasTurn = nil, false
	return hadTurn && t.queue.passNow(&t.queue.alone.line, t, now) || t.mayPark() && t.park()
}

// next begins a further turn, for a goroutine that wants it. It returns nil when the lock has to be offered,
// or was lost. The mutex is held.
func (t *tenure) next(w *wish, now time.Time) *Hold {
	t.queue.locked()
	terms := &w.primitive.terms
	if !t.mayGoOn(now, terms) {
		return nil
	}
	u := &turn{tenure: t, token: t.handOffs.next(), moment: now}
	u.begin(w.parent)
	t.turn, t.hasTurn = u, t.queue.kind.Exclusive
	if t.state() == wait.Parked {
		t.become(wait.Held)
		t.queue.worth.used()
	}
	t.stay.spare, t.stay.span = false, terms.Linger
	session.Raise(t.queue.At.Floor, u.token)
	t.gives(u.token)
	return &u.first
}

// mayGoOn reports whether a further turn may begin, on these terms. Where another tenure has begun to hold
// since its last turn, Redis had lost this one, which is about to learn it. The mutex is held.
func (t *tenure) mayGoOn(now time.Time, terms *terms.Terms) bool {
	return t.handOffs.token >= t.queue.alone.given && (t.state() == wait.Held || t.state() == wait.Parked) && t.item.LeftAt(now) > 0 && t.queue.At.Client.Closing.Err() == nil &&
		terms.Passable() && terms.Lease == t.terms.Lease && !t.handOffs.due(now, t.first.moment, t.stay.until, terms, t.queue.unasked())
}

// used is how many tokens its turns have had.
func (t *tenure) used() int64 {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.handOffs.token - t.first.token + 1
}

// succeed returns the tenure with which the new delegate of the line competes: what was left to it if that
// waits in the queue, else a fresh one. If what was left holds the lock, the fresh one begins with an offer.
// It returns nil once the client is closing.
func (p *Primitive) succeed(c *contender, left *tenure) *tenure {
	if left != nil && !left.wasHeld() {
		if left.terms.Lease == p.terms.Lease {
			left.inherit(c)
			return left
		}
		left.discard()
		left = nil
	}
	t := p.newTenure(c)
	switch {
	case left == nil:
	case t == nil || !left.queue.waiters.Answered(&left.waiter): // nothing may end it before its acquires are answered
		left.discard()
	case !left.queue.At.Client.Keeper.Remove(&left.item): // lost, while there was no hold that had to be told
		left.finish()
	default:
		t.waiter.Offers = true
		t.offered = left // no other goroutine knows of either
	}
	return t
}

// inherit notes who competes with it from now on.
func (t *tenure) inherit(c *contender) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.caller = c.Parent
	if t.opening != nil { // it was not sent
		t.opening = c.First
	}
}

// discard gives back what no goroutine in the line took.
func (t *tenure) discard() {
	switch {
	case t == nil:
	case t.wasHeld(): // its turns have ended well; it is cancelled like a wait, for which Shutdown has patience
		t.queue.At.Client.Keeper.Remove(&t.item)
		t.giveBack()
	default:
		t.cancel()
	}
}

// cancel gives back what was granted, or may be, to a tenure whose caller waits no more.
func (t *tenure) cancel() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.queue.waiters.Cancel(&t.waiter)
}

// offerAnswered ends the tenure that was offered: Redis has ended its id.
func (t *tenure) offerAnswered() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.endOffered()
}

// endOffered is offerAnswered with the mutex held.
func (t *tenure) endOffered() {
	old := t.offered
	t.offered = nil
	if old != nil && old.owns() {
		old.retire(old.queue.waiters.End)
	}
}
