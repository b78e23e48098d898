package core

import (
	"context"
	"time"
)

// How rlock hands on inside the process.
//
// The goroutines that want the lock stand in the resource's line. Its head is the delegate, the only one that queues in
// Redis; from then on the turn of the line goes with the lock. Unlock passes both to the next in line, who finds the tenure
// as what was left, and holds under the same owner id with the next of its reserved tokens: no command is sent.
//
// That must not go on for ever while other processes wait. When the budget is used up, when the tokens are, and from time
// to time in case that a message was lost, the next in line does not take the lock but offers it, under a fresh id: one
// script gives it to the head of the queue and appends the fresh id, or makes the fresh id the owner, with new tokens. While
// that is unanswered nobody here holds, and it can be repeated until it is, because the old id is over with the first copy
// that arrives.
//
// The same way a delegate that gives up leaves its place in the queue to the next in line, who goes on with it.

// unasked is how many times the budget's time a process hands on inside without offering, when it does not know of others
// that wait.
const unasked = 4

// passOn leaves the lock to the next in line, and reports whether there is one. The turn's holds have ended.
func (t *tenure) passOn(done *turn) bool {
	t.mu.Lock()
	lined := t.lined
	t.turn, t.lined = nil, false
	t.mu.Unlock()
	if !lined || !t.line.Pass(t) {
		return false
	}
	t.client.options.Observer.released(done)
	return true
}

// next begins a further turn. It returns nil when the lock has to be offered, or was lost.
func (t *tenure) next(parent context.Context, terms terms) *Hold {
	now := time.Now()
	t.mu.Lock()
	if t.client.closing.Err() != nil || !t.kept || t.loss != nil || t.item.Left() <= 0 || !terms.passable() || terms.lease != t.terms.lease || t.offerDue(now, terms) {
		t.mu.Unlock()
		return nil
	}
	t.token++
	t.reserved--
	if !t.wanted.IsZero() {
		t.handed++
	}
	u := &turn{tenure: t, token: t.token, moment: now}
	u.begin(parent)
	t.turn, t.lined = u, true
	t.mu.Unlock()
	raise(t.seen, u.token)
	return &u.first
}

// used is how many tokens its turns have had.
func (t *tenure) used() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.token - t.first.token + 1
}

func (t *tenure) offerDue(now time.Time, terms terms) bool {
	switch {
	case t.reserved == 0:
		return true
	case t.wanted.IsZero():
		return now.Sub(t.first.moment) >= unasked*terms.span
	default:
		return t.handed >= terms.holds || now.Sub(t.wanted) >= terms.span
	}
}

// want is told that others wait.
func (t *tenure) want() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wanted.IsZero() {
		t.wanted = time.Now()
	}
}

// follow returns the tenure with which the new head of the line competes: what was left to it if that waits in the queue,
// else a fresh one, which begins with an offer if what was left holds the lock. It returns nil once the client is closing.
func (p *primitive) follow(left *tenure) *tenure {
	if left != nil && !left.isKept() {
		if left.terms.lease == p.terms.lease {
			return left
		}
		left.dispose()
		left = nil
	}
	t := p.newTenure(0, true)
	switch {
	case left == nil:
	case t == nil || !left.waiters.Answered(&left.waiter): // an acquire of it must be answered before anything ends it
		left.dispose()
	case !left.client.keeper.Remove(&left.item): // lost, while nobody held it who would have to be told
		left.end()
		left.forget(false)
	default:
		t.waiter.Offers = true
		t.offered.Store(left)
	}
	return t
}

func (t *tenure) isKept() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept
}

// dispose gives back what nobody in the line took.
func (t *tenure) dispose() {
	switch {
	case t == nil:
	case t.isKept(): // its turns have ended well; it is cancelled like a wait, for which Shutdown has patience
		t.client.keeper.Remove(&t.item)
		t.forget(true)
		t.end()
	default:
		t.waiters.Cancel(&t.waiter)
	}
}

// answered is told that Redis has ended the id that was offered.
func (t *tenure) answered() {
	if old := t.offered.Swap(nil); old != nil {
		old.end()
		old.forget(false)
	}
}
