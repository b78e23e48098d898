package grant

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/terms"
)

// Giving on: how the goroutines of a process pass permits on among themselves, where a budget says that they
// may.
//
// They stand in the line of the queue, as the goroutines of an rlock do. But the head of the line, the delegate,
// holds nothing while the others wait: it queues in Redis for permits of its own, and its turn in the line ends with the
// grant. So the process holds as many tenures as it is granted. A goroutine that releases one gives it to the first
// in the line that wants as many permits, who holds under the same owner id with the next of its reserved
// tokens. That one leaves the line without having had the turn.
//
// So who waits in Redis is overtaken, here and in other processes. The budget bounds it. It counts from the
// grant: a holder of permits is not told that others wait. When it is used up the permits go back to Redis,
// which grants them to the first in the queue.

// standForPermits waits in the line for permits that are given on, or for the turn to compete. Where the line
// is empty, and no delegate had to queue, there may be enough for all that come now. So they compete beside
// the delegate, without the turn, and their requests share a script. It returns what c was given: the turn,
// or nothing of the line, means that c competes.
func (p *Primitive) standForPermits(c *contender) (gift, error) {
	q := p.Queue
	q.mu.Lock()
	apart := p.terms.Yields && (c.Permits > 1 || q.others.wait()) // a larger one may fit later than those behind it
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
	if t != nil && t != g.left && !alone { // else no goroutine may come to which it could be given, and tokens cost Redis a little
		t.waiter.Demand.Turns = p.terms.Holds
	}
	c.tenure = t
	return g, nil
}

// inherit returns the tenure with which the new delegate competes: the one that was left to it, if that
// stands in the queue for the same, else a fresh one. It returns nil once the client is closing.
func (p *Primitive) inherit(c *contender, left *tenure) *tenure {
	if left != nil && left.permits == c.Permits && left.terms.Lease == p.terms.Lease {
		return left
	}
	left.discard()
	return p.newTenure(c)
}

// beginBudget begins the budget of a tenure of permits. The mutex is held. Up to a quarter of the span is
// taken as over. So tenures that begin together do not all go back to Redis at the same moment, where the
// delegate alone waits for them.
func (t *tenure) beginBudget(terms *terms.Terms) {
	t.handOffs.contendedSince = time.Now().Add(-rand.N(terms.Span/4 + 1))
}

// passOn passes on the turn of a delegate that got nothing, and has left nothing in Redis.
func (q *Queue) passOn(shared bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endTurn(shared, nil)
}

// endTurn passes on the turn of a delegate that got nothing, with its place in the queue if that is left. The
// mutex is held.
func (q *Queue) endTurn(shared bool, left *tenure) (taken bool) {
	if !q.kind.Exclusive {
		q.rivals--
	}
	return q.passNow(&q.half(shared).line, left, time.Now())
}

// letIn ends the turn of a delegate that holds now, and lets the next in the line compete. atOnce: it did not
// have to queue, so more permits may be free, and it lets in two. Each of these that need not queue lets in two
// more. Of the delegates that had to queue, only the last one lets in another. The mutex is held.
func (q *Queue) letIn(atOnce bool) {
	q.rivals--
	if q.rivals <= 0 || atOnce {
		q.passTurn(&q.alone.line)
	}
	if atOnce {
		q.passTurn(&q.alone.line)
	}
}

// giveOn leaves the tenure to one in the line, and reports whether there is one. The turn's hold has ended.
// Where a part was given back, or is about to be, the rest follows it. The mutex is held: so a part that
// comes too late finds no hold.
func (t *tenure) giveOn(done *turn, now time.Time) bool {
	if t.terms.Holds == 0 || t.parted {
		return false
	}
	t.turn, done.gave = nil, int32(t.permits)
	return t.give(now)
}

// looks is how many places give looks at. It looks no further: the giver holds the mutex while it looks.
const looks = 100

// give gives a tenure without a turn to the first in the line that may go on with it. That one
// leaves the line, and the turn of the line stays where it is. The mutex is held.
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

// Yielding: permits are passed on inside the process as long as no other process waits, as far as the process
// knows.
//
// Its goroutines stand in a line, as with a budget. What tells the process of others: the reply to a request
// that is queued, a grant, and a message to the last in the queue when another process queues behind it. From
// then on the line stays empty: all queue in Redis, each for itself. So each has its place among the waiters of
// other processes, and nothing is passed on. After a while one asks again
// whether others wait, while the rest stands in line. The budget bounds what happens before the process hears
// of others, or when a message is lost.
//
// A request for several permits is as one of others. It may fit later than requests that came after it, so it
// must have its place in the queue.

// remembered is how long a process believes that other processes wait, after it heard so. A request that queues in
// this time finds them again if they still wait.
const remembered = 50 * time.Millisecond

// others is whether others wait for the permits of a name. The zero value says no. The mutex of the queue
// guards it.
type others struct{ heard time.Time } // zero: never

// wait reports whether others do, as far as is known.
func (o *others) wait() bool { return !o.heard.IsZero() && time.Since(o.heard) < remembered }

// othersWait is told that others wait for what the tenure has or wants. The goroutines in line go to the
// queue.
func (t *tenure) othersWait() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if t.terms.Yields {
		t.queue.others.heard = time.Now()
		t.queue.alone.line.disband()
	}
}
