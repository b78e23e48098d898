package grant

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/terms"
)

// Giving on: how the goroutines of a process pass permits to each other, as far as a budget allows.
//
// The goroutines stand in the line of the queue, as the goroutines of an rlock do. But the head of the line, the
// delegate, holds nothing while the others wait. It queues in Redis for its own permits, and its turn in the line
// ends with the grant. So the process holds as many tenures as Redis grants it. A goroutine that releases a tenure
// gives it to the first goroutine in the line that wants as many permits. The new holder uses the same owner id, with
// the next reserved token of the tenure. It leaves the line without having had the turn.
//
// So goroutines in the line overtake the waiters in Redis, of this process and of others. The budget bounds that. It
// counts from the grant, because no message tells a holder of permits that others wait. When the budget is used up,
// the permits go back to Redis, which grants them to the first waiter in the queue.

// standForPermits makes c wait in the line until a holder passes permits on to it, or until it has the turn to compete.
// If one goroutine has the turn, no goroutine waits behind it, and no waiter of this process is queued in Redis, then
// there may be enough permits for both. Then c does not wait: it competes without the turn, and one script carries both
// requests. standForPermits returns what c got from the line. If that is neither a hold nor a permit, the caller
// competes with c.tenure.
func (p *Primitive) standForPermits(c *contender) (gift, error) {
	q := p.Queue
	q.mu.Lock()
	apart := p.terms.Yields && (c.Permits > 1 || q.others.wait()) // requests behind a larger one may fit sooner
	alone, next := q.alone.line.isEmpty(), q.alone.line.hasNext()
	q.mu.Unlock()
	if apart || !alone && !next && q.waiters.Queued() == 0 {
		c.tenure = p.newTenure(c)
		return gift{}, nil
	}
	g, err := p.enterLine(c)
	switch {
	case err != nil:
		return g, p.failed(&c.Attempt, err)
	case g.has():
		return g, nil
	}
	q.mu.Lock()
	q.rivals++
	q.mu.Unlock()
	c.inTurn = true
	t := p.inherit(c, g.left)
	if t != nil && t != g.left && !alone { // otherwise t may find no taker, and tokens cost Redis a little
		t.waiter.Demand.Turns = p.terms.Holds
	}
	c.tenure = t
	return g, nil
}

// inherit returns the tenure with which c, the new delegate, competes. If left stands in the queue for the same
// permits and lease, inherit returns left. Otherwise inherit returns a fresh tenure; nil once the client is closing.
func (p *Primitive) inherit(c *contender, left *tenure) *tenure {
	if left != nil && left.permits == c.Permits && left.terms.Lease == p.terms.Lease {
		return left
	}
	left.discard()
	return p.newTenure(c)
}

// beginBudget begins the budget of a tenure of permits. The caller holds the mutex. beginBudget takes a random part
// of the span, up to a quarter, as over. Otherwise tenures that begin together would all go back to Redis at the same
// moment, and only the delegate waits there.
func (t *tenure) beginBudget(terms *terms.Terms) {
	t.handOffs.contendedSince = time.Now().Add(-rand.N(terms.Span/4 + 1))
}

// passOn passes on the turn of a delegate that got nothing, and has left nothing in Redis.
func (q *Queue) passOn(shared bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endTurn(shared, nil)
}

// endTurn passes on the turn of a delegate that got nothing. left is the tenure with the delegate's place in the
// queue, or nil. The caller holds the mutex.
func (q *Queue) endTurn(shared bool, left *tenure) (taken bool) {
	if !q.kind.Exclusive {
		q.rivals--
	}
	return q.passNow(&q.half(shared).line, left, time.Now())
}

// letIn ends the turn of a delegate that holds now, and lets the next goroutine in the line compete. atOnce: the
// delegate did not have to queue, so more permits may be free, and letIn lets in two. Each of the two that need not
// queue lets in two more. Of the delegates that had to queue, only the last one lets in another goroutine. The caller
// holds the mutex.
func (q *Queue) letIn(atOnce bool) {
	q.rivals--
	if q.rivals <= 0 || atOnce {
		q.passTurn(&q.alone.line)
	}
	if atOnce {
		q.passTurn(&q.alone.line)
	}
}

// giveOn leaves the tenure to a goroutine in the line, and reports whether a goroutine took it. The hold of the turn
// done has ended. If a part of the permits was given back, or is about to be, giveOn does nothing: the rest goes back
// to Redis too. The caller holds the mutex, so a ReleaseN that comes too late finds no hold.
func (t *tenure) giveOn(done *turn, now time.Time) bool {
	if t.terms.Holds == 0 || t.parted {
		return false
	}
	t.turn, done.gave = nil, int32(t.permits)
	return t.give(now)
}

// looks is how many places of the line give looks at, at most: the caller holds the mutex in that time.
const looks = 100

// give gives a tenure without a turn to the first goroutine in the line that may go on with it. That goroutine leaves
// the line, and the turn of the line stays where it is. The caller holds the mutex.
func (t *tenure) give(now time.Time) bool {
	t.queue.locked()
	l := &t.queue.alone.line
	p := l.first
	for n := 0; p != nil && n < looks; n++ {
		if p.wish.permits == t.permits {
			if hold := t.next(&p.wish, now); hold != nil {
				l.send(p, gift{hold: hold})
				return true
			}
		}
		p = p.next
	}
	return false
}

// Yielding: a process passes permits on inside as long as it knows of no other process that waits.
//
// The goroutines of the process stand in a line, as with a budget. Three things tell the process of others: the reply
// to a request that is queued, a grant, and a message. The last waiter in the queue gets that message when another
// process queues behind that waiter. Once the process knows of others, the line stays empty: each goroutine queues in
// Redis for itself. So each goroutine has its place among the waiters of other processes, and passes nothing on.
// After a while one goroutine asks again whether others wait, while the rest stand in line. The budget bounds what
// the process passes on before it hears of others, or when a message is lost.
//
// A request for several permits counts as a request of another process. It may fit later than requests that came
// after it, so it must have its own place in the queue.

// remembered is how long a process believes that other processes wait, after it heard so. If they still wait, a
// request that queues in this time hears of them again.
const remembered = 50 * time.Millisecond

// others records whether other processes wait for the permits of a name. The zero value says no. The mutex of the
// queue guards it.
type others struct{ heard time.Time } // zero: never

// wait reports whether other processes wait, as far as this process knows.
func (o *others) wait() bool { return !o.heard.IsZero() && time.Since(o.heard) < remembered }

// othersWait notes that others wait for what the tenure has or wants. If its terms yield, the goroutines in the line
// go to the queue in Redis.
func (t *tenure) othersWait() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if t.terms.Yields {
		t.queue.others.heard = time.Now()
		t.queue.alone.line.disband()
	}
}
