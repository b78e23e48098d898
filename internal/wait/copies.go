package wait

import (
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// copies is what the client knows of a waiter's acquires that ended without an answer. Redis may still run these
// acquires.
type copies struct {
	late    lateness
	endless bool      // an acquire without a deadline may still run, at any time
	latest  time.Time // the latest deadline of the others: none of them runs after it
}

// lateness is how long after a cancel an acquire may still run. It never falls.
type lateness uint8

const (
	noCopies lateness = iota
	aborted           // the client did not await or understand an answer: the acquire is ahead of all later commands
	stray             // an acquire got no answer: a copy of it may be under way
)

// possible reports whether Redis may still run an acquire.
func (c *copies) possible() bool { return c.late > noCopies }

// failed records what an acquire that ended with an error may still do. ended: its context had ended by then.
func (w *Waiter) failed(ended bool, a question, err error) {
	c := &w.copies
	switch {
	case ended: // Wait sees the end of the context too, and gives up
		c.late = max(c.late, aborted)
		if silence := retry.Silence(a.sent); silence != nil {
			w.notice.silence = silence
			c.late = stray // the connection may be broken, and a copy under way
		}
	case lua.Classify(err) == lua.NoAnswer:
		c.late = stray
		if w.waits() { // otherwise the owner reads the sequence, without the mutex
			w.sequence = 0 // w may have lost its place, and Redis may have queued it again
		}
	case errors.Is(err, lua.ErrReply):
		c.late = max(c.late, aborted) // Redis answered, but the client does not know what the acquire did
	}
	c.endless = c.endless || a.until <= 0
	if a.deadline.After(c.latest) {
		c.latest = a.deadline
	}
}

// repeat returns for how long the client repeats a cancel because of copies, and when it must send the last cancel.
func (c *copies) repeat(lease time.Duration) (d time.Duration, last time.Time) {
	switch c.late {
	case aborted:
		d = time.Second
	case stray:
		d = min(2*lease, queueTTL)
	}
	if !c.endless && d > 0 {
		d = min(d, max(time.Until(c.latest), 0))
		last = c.latest.Add(certain)
	}
	return d, last
}

// Stray reports whether an acquire of w got no answer. Then w may be queued more than once.
func (q *Waiters) Stray(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.copies.late == stray
}

// Outlived reports whether an answer said that w owns the lock, but came after the lease was over.
func (q *Waiters) Outlived(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.outlived
}

// Outstanding reports whether something about w, which has its grant, may still arrive: an answer, a copy of an
// acquire, or the message of a grant that a reply told first.
func (q *Waiters) Outstanding(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.unanswered.N() > 0 || w.copies.possible() || w.trace == wasQueued && !w.heard
}
