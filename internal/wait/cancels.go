package wait

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// cancellation is a waiter whose cancel has to reach Redis.
type cancellation struct {
	waiter   *Waiter
	place    int64         // in the queue: greater than all before it
	due      time.Time     // of the next cancel
	pause    time.Duration // until the one after that
	repeat   time.Duration // for how long after the first answer it is repeated
	answered time.Time     // the first answer; zero: none yet
	useless  time.Time     // by then Redis has forgotten the waiter
	last     time.Time     // a cancel must be sent after that; zero: any will do
	round    int           // how many scripts have left it for the next
}

// queueTTL is how long a queue outlives the last question of its waiters (shared/queue.lua).
const queueTTL = time.Minute

// certain is how long after the deadline of an attempt no copy of it can run, although the server's clock is
// not known exactly.
const certain = 100 * time.Millisecond

// Cancel ends w, which is not wanted any more: neither its wait, nor a grant that raced the end of that. The
// mutex is held.
func (q *Waiters) Cancel(w *Waiter) {
	// Not so when every acquire was answered, with a no.
	something := w.hasGrant() || w.trace == wasQueued || w.copies.possible() || w.Offers
	q.end(w, something)
}

// End ends w, whose grant is over in Redis. What an acquire of it may still do there is cancelled. The mutex
// is held.
func (q *Waiters) End(w *Waiter) {
	q.end(w, w.copies.possible())
}

// end cancels w if something of it may be in Redis, or come to be there. It is called once.
func (q *Waiters) end(w *Waiter, something bool) {
	switch {
	case w.unanswered.N() > 0:
		q.departures.Add(1)
		q.Become(w, Leaving)
	case something:
		q.departures.Add(1)
		q.cancel(w)
	default:
		q.forget(w)
	}
}

// forget ends the last state but one of w.
func (q *Waiters) forget(w *Waiter) {
	q.Become(w, Over)
	q.server.Gone(w)
}

// cancel has what w may own, and its entries in the queue, removed in one step. No acquire of w is
// unanswered.
//
// While an acquire got no answer, a copy of it can still arrive after the cancel and take the lock for
// nobody. So the cancel is repeated, at intervals that grow: such a copy costs at most about as much time as
// it was late. An acquire that was only not waited for is ahead of the cancel on their connection. In case
// that this broke just then, the cancel is repeated for a second. What was sent with a deadline cannot run
// after it: the last cancel is sent then.
func (q *Waiters) cancel(w *Waiter) {
	q.Become(w, Cancelling)
	c := &cancellation{
		waiter: w, place: w.sequence, pause: 50 * time.Millisecond,
		useless: time.Now().Add(max(queueTTL, w.Lease)),
	}
	c.repeat, c.last = w.copies.repeat(w.Lease)
	q.cancels.add(c)
	if !q.sending {
		q.sending = true
		q.server.Go(q.sendCancels)
		return
	}
	select {
	case q.added <- struct{}{}:
	default: // it will look anyway
	}
}

// sendCancels sends cancels, many at a time, until there are none. One goroutine does.
func (q *Waiters) sendCancels() {
	for {
		batch, next := q.dueCancels()
		switch {
		case len(batch) > 0:
			q.sendBatch(batch)
		case next.IsZero():
			return
		default:
			t := time.NewTimer(time.Until(next))
			select {
			case <-t.C:
			case <-q.added:
			case <-q.closing.Done():
			}
			t.Stop()
		}
	}
}

// dueCancels takes the cancels that are due, in the order of the queue. So the entries of a batch stand near each
// other, and Redis finds them fast. next is when the next cancel will be due. It is zero if there is none.
func (q *Waiters) dueCancels() (batch []*cancellation, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing.Err() != nil {
		for _, c := range q.cancels.drop() { // those were answered
			q.forget(c.waiter)
		}
	}
	now := time.Now()
	for len(batch) < lua.LeaveBatch {
		c := q.cancels.next(now)
		if c == nil {
			break
		}
		if now.After(c.useless) {
			q.heard(c)
			q.forget(c.waiter)
			continue
		}
		batch = append(batch, c)
	}
	next = q.cancels.at()
	q.sending = len(batch) > 0 || !next.IsZero()
	return batch, next
}

// sendBatch sends one batch, and puts back what has to be sent again.
func (q *Waiters) sendBatch(batch []*cancellation) {
	ws := make([]*Waiter, len(batch))
	for i, c := range batch {
		ws[i] = c.waiter
	}
	sent := time.Now()
	cancelled, err := q.server.Cancel(ws)
	passing := err != nil && lua.Passing(err)
	if passing {
		q.server.Failed(err, sent)
		passing = q.server.Up(q.closing) == nil
	}
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, c := range batch {
		switch {
		case err != nil && !passing: // it will not be different next time, or the client is closed
			q.heard(c)
			q.forget(c.waiter)
		case err != nil:
			q.cancels.add(c)
		case !cancelled[i]: // after all that no script has tried: the queue is shorter then
			c.round++
			q.cancels.add(c)
		default:
			q.heard(c)
			if c.answered.IsZero() {
				c.answered = now
			}
			if c.repeats(sent, now) {
				q.cancels.postpone(c)
			} else {
				q.forget(c.waiter)
			}
		}
	}
}

// heard notes that Redis has heard of a cancel, or that no goroutine waits for that any more.
func (q *Waiters) heard(c *cancellation) {
	if c.answered.IsZero() {
		q.departures.Add(-1)
	}
}

// repeats is told of an answer. It reports whether the cancel must be sent again, when it is due.
func (c *cancellation) repeats(sent, now time.Time) bool {
	if now.Sub(c.answered)+c.pause > c.repeat {
		if !sent.Before(c.last) {
			return false
		}
		c.pause = c.last.Sub(now)
	}
	c.due = now.Add(c.pause)
	c.pause *= 2
	return true
}
