package wait

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// departure is a wait whose cancel has to reach Redis.
type departure struct {
	waiter   *Waiter
	place    int64         // in the queue: greater than that of all before it
	due      time.Time     // of the next cancel
	pause    time.Duration // until the one after that
	repeat   time.Duration // for how long after the first answer it is repeated
	answered time.Time     // the first answer; zero: none yet
	useless  time.Time     // by then Redis has forgotten it
	last     time.Time     // a cancel must be sent after that; zero: any will do
	round    int           // how many scripts have left it for the next
}

// certain is how long after the deadline of an attempt no copy of it can run, although the server's clock is
// not known exactly.
const certain = 100 * time.Millisecond

// cancel removes in one step what w may own and where it may be queued. It is called once, when no acquire is
// unanswered.
//
// While an acquire of the id got no answer, a late copy can still arrive after the cancel and take the lock
// for nobody; so the cancel is repeated at growing intervals, and such a copy costs at most about as much
// time as it was late. An acquire whose answer was only not waited for is ahead of the cancel on their
// connection; that the connection broke just then is covered for a second. What was sent with a deadline
// cannot run after it: the last cancel is sent then.
func (r *Room) cancel(w *Waiter) {
	d := &departure{waiter: w, place: w.sequence, pause: 50 * time.Millisecond, useless: time.Now().Add(max(queueTTL, w.Lease))}
	if w.aborted {
		d.repeat = time.Second
	}
	if w.stray {
		d.repeat = min(2*w.Lease, queueTTL)
	}
	if !w.endless && d.repeat > 0 {
		d.repeat = min(d.repeat, max(time.Until(w.latest), 0))
		d.last = w.latest.Add(certain)
	}
	r.departures.add(d)
	if !r.departing {
		r.departing = true
		r.server.Go(r.depart)
		return
	}
	select {
	case r.departed <- struct{}{}:
	default: // it will look anyway
	}
}

// depart sends the cancels, many at a time, until there are none. One goroutine a room does.
func (r *Room) depart() {
	for {
		batch, next := r.leavers()
		switch {
		case len(batch) > 0:
			r.leave(batch)
		case next.IsZero():
			return
		default:
			t := time.NewTimer(time.Until(next))
			select {
			case <-t.C:
			case <-r.departed:
			case <-r.closing.Done():
			}
			t.Stop()
		}
	}
}

// leavers takes the cancels that are due, in the order of the queue: so those of a batch stand near each
// other, and Redis finds them soon. Without any it returns when the next one will be, or a zero time when none
// will.
func (r *Room) leavers() (batch []*departure, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing.Err() != nil {
		for _, d := range r.departures.drop() { // those were answered
			r.server.Forget(d.waiter)
		}
	}
	now := time.Now()
	for len(batch) < lua.LeaveBatch {
		d := r.departures.next(now)
		if d == nil {
			break
		}
		if now.After(d.useless) {
			r.server.Forget(d.waiter)
			continue
		}
		batch = append(batch, d)
	}
	next = r.departures.at()
	r.departing = len(batch) > 0 || !next.IsZero()
	return batch, next
}

// leave sends one batch, and puts back what has to be sent again.
func (r *Room) leave(batch []*departure) {
	waiters := make([]*Waiter, len(batch))
	for i, d := range batch {
		waiters[i] = d.waiter
	}
	sent := time.Now()
	ended, err := r.server.Leave(waiters)
	passing := err != nil && lua.Passing(err)
	if passing {
		r.server.Failed(err, sent)
		passing = r.server.Up(r.closing) == nil
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range batch {
		switch {
		case err != nil && !passing: // it will not be different next time, or nobody is here to send it
			r.server.Forget(d.waiter)
		case err != nil:
			r.departures.add(d)
		case !ended[i]: // after all that no script has tried: the queue is shorter then
			d.round++
			r.departures.add(d)
		case d.repeats(sent, now):
			r.departures.postpone(d)
		default:
			r.server.Forget(d.waiter)
		}
	}
}

// repeats is told of an answer, and reports whether the cancel must be sent again, when it is due.
func (d *departure) repeats(sent, now time.Time) bool {
	if d.answered.IsZero() {
		d.answered = now
	}
	if now.Sub(d.answered)+d.pause > d.repeat {
		if !sent.Before(d.last) {
			return false
		}
		d.pause = d.last.Sub(now)
	}
	d.due = now.Add(d.pause)
	d.pause *= 2
	return true
}

// Abandon ends the wait of w, which nobody waits for any more. A grant that raced it is given back.
func (r *Room) Abandon(w *Waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	nothing := w.state != granted && !w.entered && !w.stray && !w.aborted && !w.Offers // every acquire was answered, with a no
	w.again = false
	r.settle(w, ended)
	switch {
	case w.asking > 0:
		w.leave = true
	case nothing:
		r.server.Forget(w)
	default:
		r.cancel(w)
	}
}

// Settled reports whether no acquire of w is unanswered: only then may its release be sent (rule 2).
func (r *Room) Settled(w *Waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return w.asking == 0
}

// Settle returns when that is so, or with the cause when ctx ends.
func (r *Room) Settle(ctx context.Context, w *Waiter) error {
	r.mu.Lock()
	if w.asking == 0 {
		r.mu.Unlock()
		return nil
	}
	if w.settled == nil {
		w.settled = make(chan struct{})
	}
	settled := w.settled
	r.mu.Unlock()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Retire is told that a grant is over and nothing more will be sent for it. With cancel, or when an acquire
// of it is unanswered or may still arrive, it is cancelled, and forgotten after that; Retire reports whether
// that is so.
func (r *Room) Retire(w *Waiter, cancel bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.state = ended
	switch {
	case w.asking > 0:
		w.leave = true
	case cancel || w.stray || w.aborted: // aborted: the one who asked has left, and w to somebody else
		r.cancel(w)
	default:
		return false
	}
	return true
}

// Stray reports whether an acquire of w got no answer, so that it may be queued more than once.
func (r *Room) Stray(w *Waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return w.stray
}

// Echoes reports whether something about w may still arrive although it was granted: an answer, a copy of its
// acquire, or the message of a grant that it learnt by asking.
func (r *Room) Echoes(w *Waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return w.asking > 0 || w.stray || w.aborted || w.entered && !w.heard
}
