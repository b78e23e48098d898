package wait

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// margin is what arm adds to the end of a lease: the key is gone one millisecond after that end.
const margin = 2 * time.Millisecond

// LeaseEnds takes the news that the holder's lease ends in d. Then the lock may be free although no message says so.
func (q *Waiters) LeaseEnds(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.arm(d.Milliseconds())
}

// Freed takes the hint that the lock or permits may be free now. It asks for the oldest waiter, as tick does: at
// once, or after a pause if hints have brought no grant for long.
func (q *Waiters) Freed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing.Err() != nil {
		return
	}
	e := q.queued.Front()
	switch {
	case e == nil:
	case q.hints.Ask():
		q.recheck(e.Value.(*Waiter))
	default:
		q.arm(retry.HintPause.Milliseconds())
	}
}

// arm sets the timer of the next re-check: to the end of the holder's lease, ms from now (negative: never), and to
// the poll at the latest. One timer serves all waiters.
func (q *Waiters) arm(ms int64) {
	d := q.poll
	if ends := time.Duration(ms)*time.Millisecond + margin; ms >= 0 && ends < d {
		d = ends
	}
	due := time.Now().Add(d)
	if !q.due.IsZero() && !due.Before(q.due) {
		return
	}
	q.due = due
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.tick)
	} else {
		q.timer.Reset(d)
	}
}

// tick asks for the oldest waiter alone. If the lock is free, this question grants the lock to the head of the queue.
func (q *Waiters) tick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due = time.Time{}
	if q.closing.Err() != nil {
		return
	}
	if e := q.queued.Front(); e != nil {
		q.arm(-1)
		q.recheck(e.Value.(*Waiter))
	}
}

// recheck asks again for w: now, or after the answer to an acquire of w that is under way (rule 4). The caller holds
// the mutex.
func (q *Waiters) recheck(w *Waiter) {
	if q.countRecheck(w) {
		q.server.Go(func() { q.ask(context.Background(), w, lua.Again) })
	}
}

// countRecheck counts an acquire, which the caller must send. If another acquire of w is unanswered, countRecheck
// returns false, and the re-check falls due after that answer. The caller holds the mutex.
func (q *Waiters) countRecheck(w *Waiter) bool {
	if w.unanswered.N() > 0 {
		w.due = true
		return false
	}
	if w.state == Idle {
		q.Become(w, Asking) // a message came for a waiter that no sender could know yet
	}
	w.count()
	w.trace = max(w.trace, mayQueue)
	return true
}

// RecheckSlowly asks again for every waiter, oldest first, and calls pause after each. It ends when pause returns
// false. A waiter whose acquire is under way asks once more after its answer.
func (q *Waiters) RecheckSlowly(pause func() bool) {
	for _, w := range q.all() {
		if !q.begin(w) {
			continue
		}
		q.ask(context.Background(), w, lua.Again)
		if !pause() {
			return
		}
	}
}

// ClockSet takes the news that the server's clock was set. An earlier reading dates no grant any more. A lease may
// end sooner than a reply said, so the oldest waiter asks soon.
func (q *Waiters) ClockSet() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forgetClock()
	if q.queued.Len() > 0 {
		q.arm(0)
	}
}

func (q *Waiters) forgetClock() {
	for e := q.queued.Front(); e != nil; e = e.Next() {
		e.Value.(*Waiter).reading.clock = 0
	}
}

// all returns the queued waiters, oldest first.
func (q *Waiters) all() []*Waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]*Waiter, 0, q.queued.Len())
	for e := q.queued.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*Waiter))
	}
	return all
}

// begin counts a re-check, which the caller must send. It returns false if w does not wait any more, or if the
// re-check must follow an acquire that is unanswered.
func (q *Waiters) begin(w *Waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.waits() && q.closing.Err() == nil && q.countRecheck(w)
}
