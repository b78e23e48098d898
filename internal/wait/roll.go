package wait

import (
	"cmp"
	"context"
	"slices"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// called is what a roll call says of a waiter, until the waiter sends its next acquire.
type called uint8

const (
	uncalled called = iota
	open            // a roll call is under way, and has not found the waiter yet
	seen            // the waiter is in the queue
	absent          // the waiter is not in the queue, and no command under way can queue it
)

// few is how many waiters make a roll call worth while: Redis rather answers fewer questions than reads the queue.
const few = 16

// lostRolls is how often askDue calls the roll anew because an entry has left the queue: the entry behind which the
// next part would have begun.
const lostRolls = 3

// count counts the acquire of w that follows. This acquire is the question that was due.
func (w *Waiter) count() {
	w.unanswered.Add(1)
	w.due, w.called = false, uncalled
}

// RecheckAll asks for every waiter. The client calls it after Redis has confirmed a subscription, because grants may
// have been lost before, and after Redis came back, because the entries may be gone. The client sends each question
// after the call. The server may have another clock now, so an earlier reading dates no grant any more.
//
// The oldest waiter asks, and this question grants a free lock to the next waiter. For the other waiters the client
// reads the queue, a part at a time: most of these waiters are in it. The rest ask, oldest first, one after the
// other.
func (q *Waiters) RecheckAll() {
	q.mu.Lock()
	q.rounds++
	q.forgetClock()
	q.allDue(nil)
	run := q.begins(forAll)
	q.mu.Unlock()
	if run {
		q.askDue()
	}
}

// asks is what askDue does.
type asks uint8

const (
	notAsking asks = iota // askDue does not run
	forSome               // askDue asks for the waiters whose question is due
	forAll                // since askDue began, the question of every queued waiter has fallen due
)

// begins reports whether the caller must run askDue, because askDue does not run yet. The caller holds the mutex.
func (q *Waiters) begins(next asks) bool {
	before := q.asks
	q.asks = max(before, next)
	return before == notAsking
}

// allDue notes that a question is due for every queued waiter but except. The caller holds the mutex.
func (q *Waiters) allDue(except *Waiter) {
	for e := q.queued.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*Waiter); w != except {
			w.due = true
		}
	}
}

// beginAsking starts askDue, unless askDue runs already. The caller holds the mutex.
func (q *Waiters) beginAsking(next asks) {
	if q.begins(next) {
		q.server.Go(q.askDue)
	}
}

// askDue asks for the waiters whose question is due, until no question is due. One goroutine runs it.
func (q *Waiters) askDue() {
	lost := 0
	for ws := q.takeDue(); ws != nil; ws = q.takeDue() {
		q.askIfDue(ws[0]) // the lock may be free
		rest := ws[1:]
		if len(rest) >= few && lost < lostRolls {
			var gone bool
			if rest, gone = q.callRoll(rest); gone {
				lost++
				continue
			}
		}
		lost = 0
		for _, w := range rest {
			q.askIfDue(w)
		}
	}
}

// takeDue returns the waiters whose question is due, in the order of the queue. So waiters that have lost their
// places get new places in the same order. If no question is due, askDue is over.
func (q *Waiters) takeDue() (ws []*Waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing.Err() == nil {
		for e := q.queued.Front(); e != nil; e = e.Next() {
			if w := e.Value.(*Waiter); w.isDue() {
				ws = append(ws, w)
			}
		}
	}
	if ws == nil {
		q.asks = notAsking
	}
	slices.SortFunc(ws, func(a, b *Waiter) int {
		return cmp.Or(cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.Number, b.Number))
	})
	return ws
}

// askIfDue asks for w, unless w has asked since, or waits no more.
func (q *Waiters) askIfDue(w *Waiter) {
	q.mu.Lock()
	mode := lua.Again
	if w.called == absent {
		mode = lua.Unqueued
	}
	ask := w.due && w.waits() && q.closing.Err() == nil && q.countRecheck(w)
	q.mu.Unlock()
	if ask {
		q.ask(context.Background(), w, mode)
	}
}

// callRoll takes waiters whose question is due. It looks which of them are in the queue, and returns the waiters that
// must ask. If gone is true, callRoll did not come to the end: the question of each waiter that callRoll has not seen
// is still due. If the queue itself is gone, the oldest waiter finds that out, and then the question of every waiter
// falls due.
//
// If a waiter is in the queue, and has sent no acquire that may still run, the waiter does not own the lock: a grant
// takes its waiter out of the queue. If a waiter is not in the queue, and has sent no acquire since, Redis does not
// queue that waiter twice when it asks. So callRoll leaves out each waiter that may have a stray copy under way.
func (q *Waiters) callRoll(ws []*Waiter) (rest []*Waiter, gone bool) {
	entries := make(map[string]*Waiter, len(ws))
	for _, w := range q.beginRoll(ws) {
		entries[q.server.Entry(w)] = w
	}
	behind, read, longest := "", int64(0), int64(0)
	for {
		a := q.question(context.Background(), nil, lua.Again)
		roll, err := q.server.Roll(behind)
		switch {
		case err != nil && lua.Passing(err):
			q.excuse(ws, a)
			q.server.Failed(err, a.sent)
			return nil, false
		case err != nil: // each waiter asks, and gets its own error
			return q.endRoll(ws, uncalled), false
		case roll.Gone:
			q.endRoll(ws, uncalled)
			return nil, true
		}
		q.present(a, roll, entries)
		if roll.End == "" {
			return q.endRoll(ws, absent), false
		}
		// If the queue has an entry many times, the roll may come back to the first copy.
		behind, longest, read = roll.End, max(longest, roll.Length), read+roll.Read
		if read > 3*(longest+roll.Read) || q.closing.Err() != nil {
			return q.endRoll(ws, uncalled), false
		}
	}
}

// beginRoll returns the waiters of ws that the roll call looks for.
func (q *Waiters) beginRoll(ws []*Waiter) []*Waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]*Waiter, 0, len(ws))
	for _, w := range ws {
		if w.called = uncalled; w.isDue() && !w.copies.possible() {
			w.called = open
			all = append(all, w)
		}
	}
	return all
}

// present takes a part of the roll.
func (q *Waiters) present(a question, roll lua.Roll, entries map[string]*Waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, entry := range roll.Entries {
		w := entries[entry]
		if w == nil || w.called != open || w.state != Queued {
			continue
		}
		w.called = seen
		if a.round != q.rounds {
			continue // rule 4: w may have lost a grant that is newer than this part
		}
		w.due, w.heard = false, false
		w.reading = reading{sent: a.sent, clock: roll.Now, after: roll.After}
		if w.early != nil {
			q.learn(w, *w.early)
		}
	}
}

// endRoll returns the waiters of ws that must ask. If the roll call looked for a waiter and did not see it, endRoll
// sets the waiter's called to becomes.
func (q *Waiters) endRoll(ws []*Waiter, becomes called) (rest []*Waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range ws {
		if w.called == seen {
			continue
		}
		if w.called == open {
			w.called = becomes
		}
		rest = append(rest, w)
	}
	return rest
}

// excuse ends a roll call that got no answer. The questions of ws are due no more, because RecheckAll follows once
// Redis is back. If RecheckAll has come since the question a, these questions stay due.
func (q *Waiters) excuse(ws []*Waiter, a question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range ws {
		w.called = uncalled
		if w.isDue() {
			w.due = a.round != q.rounds
		}
	}
}
