package wait

import (
	"cmp"
	"context"
	"slices"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// called is what a roll call has to say of a waiter. Whatever it says is over when an acquire is sent.
type called uint8

const (
	uncalled called = iota
	open            // the roll is being called, and has not come upon it
	seen            // it is in the queue
	absent          // it is not in the queue, and nothing that is under way can queue it
)

// few is for how many waiters Redis rather answers a question of each than reads the queue.
const few = 16

// lostRolls is how often the roll is called anew, because the entry has left the queue behind which it would
// have gone on.
const lostRolls = 3

// count counts an acquire of w that follows. It is the question that was due.
func (w *Waiter) count() {
	w.unanswered.Add(1)
	w.due, w.called = false, uncalled
}

// RecheckAll has a question asked for every waiter. It is called after a subscription was confirmed, since
// grants may have been lost before, and after Redis came back, since the entries may be gone. Each question
// is sent after the call. The server may have another clock now, so no grant is dated by what was known
// before.
//
// The oldest waiter asks, which grants a free lock to the next waiter. For the others the queue is
// read, a part at a time: most are in it. The rest ask, the oldest first and one after the other.
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
	notAsking asks = iota // it does not run
	forSome               // it asks for the waiters whose question is due
	forAll                // the question of all queued waiters has fallen due since it began
)

// begins reports whether askDue does not run yet. Then the caller must run it. The mutex is held.
func (q *Waiters) begins(next asks) bool {
	before := q.asks
	q.asks = max(before, next)
	return before == notAsking
}

// allDue notes that a question of everybody who is queued is due, but of one. The mutex is held.
func (q *Waiters) allDue(except *Waiter) {
	for e := q.queued.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*Waiter); w != except {
			w.due = true
		}
	}
}

// beginAsking has what is due asked. The mutex is held.
func (q *Waiters) beginAsking(next asks) {
	if q.begins(next) {
		q.server.Go(q.askDue)
	}
}

// askDue asks for the waiters whose question is due until there are none. One goroutine does.
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

// takeDue returns the waiters whose question is due, in the order of the queue: so waiters that have lost their
// places get others in the same order. When there are none, askDue is over.
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

// askIfDue asks for w, unless it has asked since, or waits no more.
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

// callRoll looks which of ws are in the queue, whose question is due, and returns those who must ask. gone
// says that it did not come to the end: then the question of those who were not seen is still due. If the
// queue itself is gone, the oldest finds that, and everybody's falls due.
//
// A waiter that is in the queue, and has sent no acquire that may still run, does not own the lock: it was taken
// out of the queue for that. A waiter that is not in the queue, and has sent none since, is not queued twice when
// it asks. So those who may have a stray copy under way are not called.
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
		case err != nil: // each is told its own error
			return q.endRoll(ws, uncalled), false
		case roll.Gone:
			q.endRoll(ws, uncalled)
			return nil, true
		}
		q.present(a, roll, entries)
		if roll.End == "" {
			return q.endRoll(ws, absent), false
		}
		// Where an entry is in the queue many times, the roll may come back to the first of them.
		behind, longest, read = roll.End, max(longest, roll.Length), read+roll.Read
		if read > 3*(longest+roll.Read) || q.closing.Err() != nil {
			return q.endRoll(ws, uncalled), false
		}
	}
}

// beginRoll returns the waiters of ws that are called.
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
			continue // rule 4: a grant that it has lost may be newer than this part
		}
		w.due, w.heard = false, false
		w.reading = reading{sent: a.sent, clock: roll.Now, after: roll.After}
		if w.early != nil {
			q.learn(w, *w.early)
		}
	}
}

// endRoll returns the waiters of ws that must ask. A waiter that was not seen becomes what becomes says.
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

// excuse ends a roll call without an answer: RecheckAll comes when Redis is back. If it has come since the
// question a, what is due is asked now.
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
