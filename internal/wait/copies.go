package wait

import (
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// copies is what is known of acquires that ended without an answer. Redis may still run them.
type copies struct {
	late    lateness
	endless bool      // one may run at any time
	latest  time.Time // when the others may run at the latest
}

// lateness is how long after a cancel one may run. It never grows less.
type lateness uint8

const (
	noCopies lateness = iota
	aborted           // one was not waited for, or not understood: it is ahead of whatever is sent after it
	stray             // one got no answer: a copy of it may be under way
)

// possible reports whether one may still run.
func (c *copies) possible() bool { return c.late > noCopies }

// failed keeps what may come of an acquire that ended with an error. ended: its context had ended by then.
func (w *Waiter) failed(ended bool, a question, err error) {
	c := &w.copies
	switch {
	case ended: // Wait sees the same, and gives up
		c.late = max(c.late, aborted)
		if silence := retry.Silence(a.sent); silence != nil {
			w.notice.silence = silence
			c.late = stray // the connection may be broken, and a copy under way
		}
	case lua.Classify(err) == lua.NoAnswer:
		c.late = stray
		if w.waits() { // otherwise the owner reads it, without a lock
			w.sequence = 0 // it may have lost its place, and been queued again
		}
	case errors.Is(err, lua.ErrReply):
		c.late = max(c.late, aborted) // it was answered, and what it did is not known
	}
	c.endless = c.endless || a.until <= 0
	if a.deadline.After(c.latest) {
		c.latest = a.deadline
	}
}

// repeat returns for how long a cancel is repeated because of copies, and when the last one must be sent.
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

// Outlived reports whether an answer said that w owns the lock, and came when that lease was over.
func (q *Waiters) Outlived(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.outlived
}

// Outstanding reports whether something about w, which was granted, may still arrive: an answer, a copy of an
// acquire, or the message of a grant that a reply told first.
func (q *Waiters) Outstanding(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.unanswered.N() > 0 || w.copies.possible() || w.trace == wasQueued && !w.heard
}
