package grant

import (
	"math/rand/v2"
	"time"
)

// Giving on: how the goroutines of a process pass permits on among themselves, where a budget says that they
// may.
//
// They stand in the line of the queue, as those of an rlock do. But its head, the delegate, holds nothing
// while the others wait: it queues in Redis for permits of its own, and its turn in the line ends with the
// grant. So the process holds as many tenures as it is granted. Whoever releases one gives it to the first
// in the line that wants as many permits, who holds under the same owner id with the next of its reserved
// tokens. That one leaves the line without having had the turn.
//
// So who waits in Redis is overtaken, here and in other processes. The budget bounds it. It counts from the
// grant: nobody tells a holder of permits that others wait. When it is used up the permits go back to Redis,
// which grants them to the first in the queue.

// wish is what one in the line wants: so many permits, on these terms.
type wish struct {
	permits int
	terms   *terms
}

// standForPermits waits in the line for permits that are given on, or for the turn to compete. Where nobody
// stands in line, and nobody had to queue, there may be enough for all that come now. So they compete beside
// the delegate, without the turn, and their requests share a script.
func (p *Primitive) standForPermits(c *contender) (*Hold, error) {
	q := p.Queue
	if p.terms.yields && (c.permits > 1 || q.others.wait()) { // a larger one may fit later than those behind it
		c.tenure = p.newTenure(c.permits, false)
		return nil, nil //nolint:nilnil // it competes
	}
	line := &q.alone.line
	alone := line.IsEmpty()
	if !alone && !line.HasNext() && q.waiters.Queued() == 0 {
		c.tenure = p.newTenure(c.permits, false)
		return nil, nil //nolint:nilnil // the same
	}
	left, given, err := line.EnterWanting(c.waits, wish{c.permits, &p.terms})
	switch {
	case err != nil:
		if !given || !left.give(time.Now()) {
			left.discard()
		}
		return nil, p.failed(c, err)
	case given:
		if hold := left.next(c.parent, &p.terms); hold != nil {
			return hold, nil
		}
		left.discard() // it was lost just now, or its time is up
		c.tenure = p.newTenure(c.permits, false)
		return nil, nil //nolint:nilnil // the same
	}
	q.rivals.Add(1)
	t := p.inherit(left, c.permits)
	if t != nil && t != left && !alone { // else nobody may come to whom it could be given, and tokens cost Redis a little
		t.waiter.Demand.Turns = p.terms.holds
	}
	c.inTurn, c.tenure = true, t
	return nil, nil //nolint:nilnil // the same
}

// inherit returns the tenure with which the new delegate competes: the one that was left to it, if that
// stands in the queue for the same, else a fresh one. It returns nil once the client is closing.
func (p *Primitive) inherit(left *tenure, permits int) *tenure {
	if left != nil && left.permits == permits && left.terms.lease == p.terms.lease {
		return left
	}
	left.discard()
	return p.newTenure(permits, true)
}

// beginBudget begins the budget of a tenure of permits, whose mutex is held. Up to a quarter of the span is
// taken as over. So tenures that begin together do not all go back to Redis at the same moment, where the
// delegate alone waits for them.
func (t *tenure) beginBudget(terms *terms) {
	t.handOffs.contended = time.Now().Add(-rand.N(terms.span/4 + 1))
}

// endTurn passes on the turn of a delegate that got nothing, with its place in the queue if that is left.
func (q *Queue) endTurn(shared bool, left *tenure) (taken bool) {
	if !q.kind.Exclusive {
		q.rivals.Add(-1)
	}
	return q.half(shared).line.Pass(left)
}

// letIn ends the turn of a delegate that holds now: others compete. Where it did not have to queue there may
// be more to be had. So two compete after it, and four after these, until one has to queue. Of those that
// had to queue, only the last lets one in.
func (q *Queue) letIn(atOnce bool) {
	last := q.rivals.Add(-1) <= 0
	if last || atOnce {
		q.alone.line.Pass(nil)
	}
	if atOnce {
		q.alone.line.Pass(nil)
	}
}

// giveOn leaves the tenure to one in the line, and reports whether there is one. The turn's hold has ended.
func (t *tenure) giveOn(done *turn) bool {
	if t.terms.holds == 0 || !t.parting.TryLock() { // a part is being given back: the rest follows it
		return false
	}
	defer t.parting.Unlock() // until the next has the permits: a part that comes too late finds that
	if t.parted {
		return false
	}
	t.mu.Lock()
	t.turn, done.gave = nil, t.permits
	t.mu.Unlock()
	if !t.give(time.Now()) {
		return false
	}
	done.released()
	return true
}

// give gives a tenure that nobody has a turn in to the first in the line that may go on with it.
func (t *tenure) give(now time.Time) bool {
	t.mu.Lock()
	state, permits, begun := t.handOffs, t.permits, t.first.moment
	goes := t.mayGoOn(now, &t.terms)
	t.mu.Unlock()
	return goes && t.queue.alone.line.Give(t, func(wants any) bool {
		w, ok := wants.(wish)
		return ok && w.permits == permits && w.terms.lease == t.terms.lease && !state.due(now, begun, time.Time{}, w.terms)
	})
}
