package grant

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// The local hand-off: how rlock passes the lock on inside the process.
//
// The goroutines that want the lock stand in the line of the queue. The goroutine at its head is the delegate: it
// alone queues in Redis. From the grant on, the turn of the line goes with the lock. Unlock passes both to the next
// goroutine in line. In the same step Unlock begins the turn of that goroutine in the tenure: the goroutine holds
// under the same owner id, with the next reserved token of the tenure. The client sends no command.
//
// Local hand-offs must not go on for ever while other processes wait. They end when the budget or the tokens are used
// up. They also end from time to time, as the message that others wait may be lost. Then the next goroutine in line
// offers the lock, under a fresh id. One script gives the lock to the head of the queue and appends the fresh id. If
// the queue is empty, the script makes the fresh id the owner, with new tokens. Until Redis answers the offer, no
// goroutine of this process holds. The client may repeat the offer until then, because the first copy that arrives
// ends the old id.
//
// A delegate that gives up leaves its place in the queue to the next goroutine in line, which goes on with that
// place.

// For how many spans of the budget a process hands off locally without an offer, when it knows of no others that
// wait. Processes of Redisson do not say that they wait.
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

// handOffs is what a tenure must know to hand off locally. The mutex of the tenure's queue guards it.
type handOffs struct {
	token          int64     // of the last turn
	reserved       int64     // tokens for further turns
	contendedSince time.Time // since when it is known that other processes wait; zero: not known
	handed         int       // turns that began after contendedSince
}

// due reports whether the process must offer the lock to other processes. first is when the tenure began. until is
// when the tenure stops lingering; zero if it does not linger. unasked is a number of terms.Span: that long after first
// the process offers the lock although it knows of no other waiter.
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

// next takes the next reserved token, for a further turn.
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

// contendNow is contend for a caller that holds the mutex.
func (t *tenure) contendNow() {
	if t.handOffs.contendedSince.IsZero() {
		t.handOffs.contendedSince = time.Now()
	}
	t.tellWanted()
}

// stepDown ends the last turn of an exclusive tenure. It reports whether the tenure goes on: the next goroutine in
// line has the tenure, or the tenure is parked for the next goroutine that comes. Otherwise the caller must release
// the tenure. The caller holds the mutex, so a message that others want the lock finds the tenure held, parked, or
// left to the next goroutine.
func (t *tenure) stepDown(now time.Time) (goesOn bool) {
	t.queue.locked()
	hadTurn := t.hasTurn
	t.turn, t.hasTurn = nil, false
	return hadTurn && t.queue.passNow(&t.queue.alone.line, t, now) || t.mayPark() && t.park()
}

// next begins a further turn, for the goroutine whose wish is w. It returns nil if the process has to offer the lock,
// or has lost it. The caller holds the mutex.
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

// mayGoOn reports whether a further turn may begin in t, on these terms. If another tenure has begun to hold since
// the last turn of t, Redis has lost t, and this process is about to learn that. The caller holds the mutex.
func (t *tenure) mayGoOn(now time.Time, terms *terms.Terms) bool {
	return t.handOffs.token >= t.queue.alone.given && (t.state() == wait.Held || t.state() == wait.Parked) && t.item.LeftAt(now) > 0 && t.queue.At.Client.Closing.Err() == nil &&
		terms.Passable() && terms.Lease == t.terms.Lease && !t.handOffs.due(now, t.first.moment, t.stay.until, terms, t.queue.unasked())
}

// used returns how many tokens the turns of the tenure have had.
func (t *tenure) used() int64 {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.handOffs.token - t.first.token + 1
}

// succeed returns the tenure with which c, the new delegate of the line, competes. If left waits in the queue, c goes
// on with left. Otherwise c gets a fresh tenure. If left holds the lock, the fresh tenure begins with an offer.
// succeed returns nil once the client is closing.
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
	case t == nil || !left.queue.waiters.Answered(&left.waiter): // an unanswered acquire: no offer may end left yet
		left.discard()
	case !left.queue.At.Client.Keeper.Remove(&left.item): // left was lost, and no hold had to hear of the loss
		left.finish()
	default:
		t.waiter.Offers = true
		t.offered = left // no other goroutine knows t or left
	}
	return t
}

// inherit notes that c competes with the tenure from now on.
func (t *tenure) inherit(c *contender) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.caller = c.Parent
	if t.opening != nil { // the first acquire was not sent
		t.opening = c.First
	}
}

// discard gives back a tenure that no goroutine in the line took.
func (t *tenure) discard() {
	switch {
	case t == nil:
	case t.wasHeld(): // its turns have ended well. It is cancelled like a wait: Shutdown has patience for waits
		t.queue.At.Client.Keeper.Remove(&t.item)
		t.giveBack()
	default:
		t.cancel()
	}
}

// cancel gives back the grant that the tenure has, or may get: its caller waits no more.
func (t *tenure) cancel() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.queue.waiters.Cancel(&t.waiter)
}

// offerAnswered ends t.offered: Redis has ended the id of that tenure.
func (t *tenure) offerAnswered() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.endOffered()
}

// endOffered is offerAnswered for a caller that holds the mutex.
func (t *tenure) endOffered() {
	old := t.offered
	t.offered = nil
	if old != nil && old.owns() {
		old.retire(old.queue.waiters.End)
	}
}
