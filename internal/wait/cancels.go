package wait

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// cancellation is a waiter whose cancel has to reach Redis.
type cancellation struct {
	waiter   *Waiter
	place    int64         // in the queue: earlier waiters have smaller numbers
	due      time.Time     // when the client sends the next cancel
	pause    time.Duration // between that cancel and the cancel after it
	repeat   time.Duration // for how long after the first answer the client repeats the cancel
	answered time.Time     // when the first answer came; zero: none has come yet
	useless  time.Time     // by then Redis has forgotten the waiter
	last     time.Time     // the client must send a cancel at this time or later; zero: it need not
	round    int           // how many scripts have left this cancel to the next script
}

// queueTTL is how long a queue outlives the last question of its waiters (shared/queue.lua).
const queueTTL = time.Minute

// certain is what repeat adds to the deadline of an attempt. After that time no copy of the attempt can run, although
// the client does not know the server's clock exactly.
const certain = 100 * time.Millisecond

// Cancel ends w: no caller wants its wait any more, nor a grant that raced the end of that wait. The caller holds the
// mutex.
func (q *Waiters) Cancel(w *Waiter) {
	// If Redis has answered every acquire with a no, it has nothing of w.
	something := w.hasGrant() || w.trace == wasQueued || w.copies.possible() || w.Offers
	q.end(w, something)
}

// End ends w, whose grant is over in Redis. If an acquire of w may still do something there, End cancels w. The
// caller holds the mutex.
func (q *Waiters) End(w *Waiter) {
	q.end(w, w.copies.possible())
}

// end cancels w if Redis has something of w, or may still get it. It runs once for each w.
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

// forget takes w to its last state, Over.
func (q *Waiters) forget(w *Waiter) {
	q.Become(w, Over)
	q.server.Gone(w)
}

// cancel begins to remove from Redis, in one step, what w may own and the entries of w in the queue. No acquire of w
// is unanswered.
//
// If an acquire got no answer, a copy of it can still arrive after the cancel, and take the lock for no waiter. So
// the client repeats the cancel, at intervals that grow: a late copy then costs at most about as much time as it was
// late. If the caller only stopped waiting for the answer, the acquire is ahead of the cancel on their connection. In
// case this connection broke just then, the client repeats the cancel for a second. An acquire with a deadline cannot
// run after the deadline: the client sends the last cancel then.
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
	default: // a signal is there already: sendCancels will look
	}
}

// sendCancels sends cancels, many at a time, until none is left. One goroutine runs it.
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
// other, and Redis finds them fast. next is when the next cancel will fall due, or zero if no cancel will.
func (q *Waiters) dueCancels() (batch []*cancellation, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing.Err() != nil {
		for _, c := range q.cancels.drop() { // Redis has answered each of these cancels once
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

// sendBatch sends one batch, and puts back each cancel that it must send again.
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
		case err != nil && !passing: // a repetition would fail too, or the client is closed
			q.heard(c)
			q.forget(c.waiter)
		case err != nil:
			q.cancels.add(c)
		case !cancelled[i]: // behind the cancels that no script has tried: the queue is shorter then
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

// heard takes c out of the departures: Redis has heard of the cancel, or the client gives the cancel up.
func (q *Waiters) heard(c *cancellation) {
	if c.answered.IsZero() {
		q.departures.Add(-1)
	}
}

// repeats takes the answer to a cancel. It reports whether the client must send the cancel again, at c.due.
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
