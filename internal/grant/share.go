package grant

import (
	"context"
	"runtime"
	"time"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// Sharing: how the goroutines of a process hold one tenure together.
//
// Readers that come while the tenure is held join it: each has a turn in it, and no command is sent. The
// last one that leaves releases. Readers that come while none is held stand in the line of their half. Its delegate
// competes, and all that stand behind it join what it was granted, in the same step.
//
// That must not go on for ever while others wait. A message says that they do. From then on a budget bounds
// how many may join, and for how long. Who comes after that competes under a fresh id, which Redis queues
// behind those others. So a tenure is joined only if its process would have heard the message all the while.
// The message can be lost. So a waiter repeats it, each time it asks.

// sharing is whether goroutines hold a tenure together.
type sharing uint8

const (
	notShared sharing = iota // one alone; or none yet, or none any more
	closed                   // several do, and no others may join
	open                     // several do, and others may join
)

// stopJoining lets no further reader join. The mutex is held.
func (t *tenure) stopJoining() { t.sharing = min(t.sharing, closed) }

// join returns a hold of the tenure that the goroutines of this process hold together. It returns nil when
// there is none, or when it is for others to have their turn. It does not overtake readers that stand in line.
func (p *Primitive) join(parent context.Context, now time.Time) *Hold {
	if parent.Err() != nil {
		return nil
	}
	q := p.Queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.shared.line.isEmpty() {
		return nil
	}
	hold := q.joinNow(&wish{primitive: p, parent: parent}, now, counted)
	if hold != nil {
		turnOf(hold).had.Store(true)
	}
	return hold
}

// joining is whether the budget counts those who join.
type joining uint8

const (
	counted   joining = iota
	uncounted         // they came before it was granted
)

// letJoin has those at the head of the line join what is held, up to the first that may not. The mutex is
// held.
func (q *Queue) letJoin(l *line, as joining) {
	for p := l.first; p != nil; p = l.first {
		hold := q.joinNow(&p.wish, time.Now(), as)
		if hold == nil {
			return
		}
		l.send(p, gift{hold: hold})
	}
}

// joinNow is join for the next in line. The mutex is held.
func (q *Queue) joinNow(w *wish, now time.Time, as joining) *Hold {
	q.locked()
	t, terms := q.shared.holder, &w.primitive.terms
	if t == nil || !terms.Sharable() || terms.Lease != t.terms.Lease || t.item.Left() <= 0 || !t.isOpen() || as == counted && !t.inBudget(now) {
		return nil
	}
	if as == counted && !t.handOffs.contendedSince.IsZero() {
		t.handOffs.handed++
	}
	t.joined++
	u := &turn{tenure: t, token: t.handOffs.token, moment: now, next: t.turn}
	u.begin(w.parent)
	if t.turn != nil {
		t.turn.previous = u
	}
	t.turn = u
	return &u.first
}

// isOpen reports whether others of this process may join at all. The mutex is held.
func (t *tenure) isOpen() bool {
	return t.sharing == open && t.owns() && t.queue.At.Client.Closing.Err() == nil
}

// inBudget reports whether one more may join now whom the budget counts. The mutex is held.
func (t *tenure) inBudget(now time.Time) bool {
	o := &t.handOffs
	return o.contendedSince.IsZero() || o.handed < t.terms.Holds && now.Sub(o.contendedSince) < t.terms.Span
}

// forInbox is how long a reader waits for the inbox at most, so that others may join it. So does whoever
// takes a lock that is to linger, so that others can end that.
const forInbox = 100 * time.Millisecond

// prepareToShare makes sure that the client hears of other waiters before a fresh tenure is granted: else no goroutine
// may join the tenure. It waits for the inbox for a moment only if other goroutines of this process hold together
// with this one, or want to. A try does not wait: its tenure is joined only if the inbox is up already.
func (t *tenure) prepareToShare(a *Attempt) {
	t.audible = t.queue.Listening()
	if t.audible || a.Try || !t.queue.isShared() {
		return
	}
	t.audible = t.queue.awaitInbox(a.Waits)
}

// isShared reports whether several goroutines hold together here, or want to.
func (q *Queue) isShared() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shared.held > 0 || q.shared.line.hasNext()
}

// awaitInbox reports whether the client hears of the name, for which it waits for a moment.
func (q *Queue) awaitInbox(waits context.Context) bool {
	limited, cancel := context.WithTimeout(waits, forInbox)
	defer cancel()
	open, stop := retry.Until(limited, q.At.Client.Closing)
	defer stop()
	return q.Inbox(open) == nil
}

// share makes a tenure shared, after its grant or after a downgrade. It opens the tenure if this process
// hears of other waiters and the terms allow sharing. Then goroutines in the line join at once, up to the
// first one that may not. They came before, so the budget does not count them. The mutex is held.
func (t *tenure) share() {
	if !t.owns() {
		return
	}
	h := t.queue.shared
	h.held++
	t.sharing = closed
	t.queue.enter() // as long as it is shared, its process must hear that others wait
	// A channel of the name alone may have been closed since it was looked at.
	listening := t.audible && (!t.queue.At.Client.Sharded || t.queue.Listening())
	if listening && t.terms.Sharable() {
		t.sharing = open
		h.holder = t
		t.queue.letJoin(&h.line, uncounted)
		t.askSoon()
	}
}

func (t *tenure) isShared() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.shared
}

// mayBeShared reports whether Redis may let others hold together with it. The mutex is held.
func (t *tenure) mayBeShared() bool { return t.shared || t.weak > 0 }

// vacate takes a turn whose last hold has ended out of a shared tenure, and reports whether the tenure ends
// with it. The mutex is held, and may be unlocked for a moment.
func (t *tenure) vacate(u *turn) (last bool) {
	u.unlink()
	if t.turn != nil {
		return false
	}
	q := t.queue
	if t.isOpen() && t.inBudget(u.moment) {
		// Goroutines that are ready to run may be about to join. To let them spares two commands.
		joined := t.joined
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
		if t.joined != joined {
			return false // it is for the last of those readers
		}
	}
	t.stopJoining()
	if q.shared.holder == t {
		q.shared.holder = nil
	}
	return true
}
