package grant

import (
	"context"
	"runtime"
	"time"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// Sharing: how the goroutines of a process hold one tenure together.
//
// Readers that come while a tenure is held join it: each reader has a turn in the tenure, and sends no command. The
// last reader that leaves releases the tenure. Readers that come while no tenure is held stand in the line of their
// half. The delegate of the line competes. All readers behind the delegate join its tenure in the step in which the
// delegate begins to hold.
//
// Readers must not join for ever while others wait. A message says that others wait. From then on a budget bounds how
// many readers may join, and for how long. A reader that comes after that competes under a fresh id, which Redis
// queues behind the others. So readers join a tenure only if its process has been able to hear the message without a
// gap. The message can be lost. So a waiter repeats the message each time it asks.

// sharing says whether goroutines hold a tenure together.
type sharing uint8

const (
	notShared sharing = iota // one goroutine holds alone, or none holds yet, or none holds any more
	closed                   // several goroutines hold, and no others may join
	open                     // several goroutines hold, and others may join
)

// stopJoining lets no further reader join. The caller holds the mutex.
func (t *tenure) stopJoining() { t.sharing = min(t.sharing, closed) }

// join returns a hold of the tenure that the goroutines of this process hold together. It returns nil if they hold no
// tenure together, or if others must have their turn. join does not overtake readers that stand in line.
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

// joining says whether the budget counts the readers that join.
type joining uint8

const (
	counted   joining = iota
	uncounted         // the readers came before the tenure was granted
)

// letJoin lets the readers at the head of the line join the held tenure, up to the first that may not join. The
// caller holds the mutex.
func (q *Queue) letJoin(l *line, as joining) {
	for p := l.first; p != nil; p = l.first {
		hold := q.joinNow(&p.wish, time.Now(), as)
		if hold == nil {
			return
		}
		l.send(p, gift{hold: hold})
	}
}

// joinNow is join for the next reader in line. The caller holds the mutex.
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

// isOpen reports whether other goroutines of this process may join at all. The caller holds the mutex.
func (t *tenure) isOpen() bool {
	return t.sharing == open && t.owns() && t.queue.At.Client.Closing.Err() == nil
}

// inBudget reports whether the budget lets one more reader join now. The caller holds the mutex.
func (t *tenure) inBudget(now time.Time) bool {
	o := &t.handOffs
	return o.contendedSince.IsZero() || o.handed < t.terms.Holds && now.Sub(o.contendedSince) < t.terms.Span
}

// forInbox is how long a reader waits for the inbox at most, so that other readers may join. A goroutine that takes a
// lock that is to linger waits as long, so that others can end the lingering.
const forInbox = 100 * time.Millisecond

// prepareToShare makes sure that the client hears of other waiters before Redis grants a fresh tenure: otherwise no
// goroutine may join the tenure. It waits for the inbox for a moment only if other goroutines of this process share a
// tenure, or want to. A try does not wait: other goroutines join its tenure only if the inbox is up already.
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

// awaitInbox waits a moment for the inbox, and reports whether the client hears of the name.
func (q *Queue) awaitInbox(waits context.Context) bool {
	limited, cancel := context.WithTimeout(waits, forInbox)
	defer cancel()
	open, stop := retry.Until(limited, q.At.Client.Closing)
	defer stop()
	return q.Inbox(open) == nil
}

// share makes a tenure shared, after its grant or after a downgrade. It opens the tenure if this process hears of
// other waiters and the terms allow sharing. Then goroutines in the line join at once, up to the first that may not
// join. They came before, so the budget does not count them. The caller holds the mutex.
func (t *tenure) share() {
	if !t.owns() {
		return
	}
	h := t.queue.shared
	h.held++
	t.sharing = closed
	t.queue.enter() // while the tenure is shared, its process must hear that others wait
	// In a cluster the channel of the name may have been closed since audible was set.
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

// mayBeShared reports whether Redis may let other owners hold together with the tenure. The caller holds the mutex.
func (t *tenure) mayBeShared() bool { return t.shared || t.weak > 0 }

// vacate takes u, whose last hold has ended, out of the shared tenure. It reports whether the tenure ends with u. The
// caller holds the mutex, which vacate may unlock for a moment.
func (t *tenure) vacate(u *turn) (last bool) {
	u.unlink()
	if t.turn != nil {
		return false
	}
	q := t.queue
	if t.isOpen() && t.inBudget(u.moment) {
		// Goroutines that are ready to run may be about to join. Letting them join saves two commands.
		joined := t.joined
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
		if t.joined != joined {
			return false // the last of the new readers ends the tenure
		}
	}
	t.stopJoining()
	if q.shared.holder == t {
		q.shared.holder = nil
	}
	return true
}
