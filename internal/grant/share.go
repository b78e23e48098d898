package grant

import (
	"context"
	"runtime"
	"time"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// Sharing: how the goroutines of a process hold one tenure together.
//
// Those that come while the tenure is held join it: each has a turn in it, and no command is sent. Whoever
// leaves last releases. Those that come while none is held stand in the line of their half. Its delegate
// competes, and joins the next in line to what it was granted.
//
// That must not go on for ever while others wait. A message says that they do. From then on a budget bounds
// how many may join, and for how long. Who comes after that competes under a fresh id, which Redis queues
// behind those others. So a tenure is joined only if its process would have heard the message all the while.
// The message can be lost. So whoever waits repeats it, each time it asks.

// join returns a hold of the tenure that the goroutines of this process hold together. It returns nil when
// there is none, or when it is for others to have their turn. inTurn says that the caller has the turn of the
// line; whoever has not does not overtake those that stand in it.
func (p *Primitive) join(parent context.Context, now time.Time, inTurn bool) *Hold {
	h := p.Queue.shared
	t := h.holder.Load()
	if t == nil || !inTurn && !h.line.IsEmpty() || parent.Err() != nil {
		return nil
	}
	return t.join(parent, now, &p.terms, inTurn)
}

func (t *tenure) join(parent context.Context, now time.Time, terms *terms, inTurn bool) *Hold {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !terms.sharable() || terms.lease != t.terms.lease || t.item.Left() <= 0 || !t.admits(now) {
		if inTurn {
			t.joins = false // it competes, as do those behind it
		}
		return nil
	}
	if !inTurn && t.handOffs.handed < 0 {
		t.handOffs.handed = 0 // nobody is left in the line of those who came before
	}
	if t.handOffs.handed < 0 || !t.handOffs.contended.IsZero() {
		t.handOffs.handed++
	}
	t.joined++
	u := &turn{tenure: t, token: t.handOffs.token, moment: now, next: t.turn}
	u.begin(parent)
	if t.turn != nil {
		t.turn.previous = u
	}
	t.turn = u
	return &u.first
}

// admits reports whether others of this process may join now. The mutex is held.
func (t *tenure) admits(now time.Time) bool {
	if !t.open || t.phase != held || t.queue.At.Client.Closing.Err() != nil {
		return false
	}
	o := &t.handOffs
	return o.handed < 0 || o.contended.IsZero() || o.handed < t.terms.holds && now.Sub(o.contended) < t.terms.span
}

// forInbox is how long a reader waits for the inbox at most, so that others may join it. So does whoever
// takes a lock that is to linger, so that others can end that.
const forInbox = 100 * time.Millisecond

// prepareToShare has a fresh tenure hear that others wait, from before it is granted. It does not wait for
// the inbox where nobody shares: then the tenure is not shared either. Where one is held already which nobody
// could join, several goroutines want to share. Then it waits for a moment, unless it only tries.
func (t *tenure) prepareToShare(waits context.Context, try bool) {
	t.audible = t.queue.Listening()
	if h := t.queue.half(true); t.audible || try || h.held.Load() == 0 && !h.line.HasNext() {
		return
	}
	t.audible = t.queue.awaitInbox(waits)
}

// awaitInbox reports whether the client hears of the name, for which it waits for a moment.
func (q *Queue) awaitInbox(waits context.Context) bool {
	limited, cancel := context.WithTimeout(waits, forInbox)
	defer cancel()
	open, stop := retry.Until(limited, q.At.Client.Closing)
	defer stop()
	return q.Inbox(open) == nil
}

// share lets others join a tenure that begins to hold: first those in the line, who came before it was
// granted and are no part of the budget. The mutex is held.
func (t *tenure) share() {
	if t.phase != held {
		return
	}
	h := t.queue.half(true)
	h.held.Add(1)
	t.sharing = true
	t.queue.enter() // as long as it is shared, its process must hear that others wait
	// A channel of the name alone may have been closed since it was looked at.
	listening := t.audible && (!t.queue.At.Client.Sharded || t.queue.Listening())
	if listening && t.terms.sharable() {
		t.open = true
		t.handOffs.handed = -h.line.Len()
		h.holder.Store(t)
	}
}

// unshare ends what share began, if it did.
func (t *tenure) unshare() {
	t.mu.Lock()
	shared := t.sharing
	t.sharing, t.open = false, false
	t.mu.Unlock()
	if shared {
		t.queue.half(true).held.Add(-1)
		t.queue.exit()
	}
}

func (t *tenure) isShared() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shared
}

// mayBeShared reports whether Redis may let others hold together with it.
func (t *tenure) mayBeShared() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shared || t.weak > 0
}

// vacate takes a turn whose last hold has ended out of a shared tenure, and reports whether the tenure ends
// with it. The mutex is held, and may be free meanwhile.
func (t *tenure) vacate(u *turn) (last bool) {
	u.unlink()
	if t.turn != nil {
		return false
	}
	if t.admits(u.moment) {
		// Goroutines that are ready to run may be about to join. To let them spares two commands.
		joined := t.joined
		t.mu.Unlock()
		runtime.Gosched()
		t.mu.Lock()
		t.awaitLine(joined)
		if t.joined != joined {
			return false // it is for whoever leaves last of those
		}
	}
	t.open = false
	t.queue.half(true).holder.CompareAndSwap(t, nil)
	return true
}

// forLine is how long a tenure that nobody holds stays for those who stood in line when it was granted. They
// are about to join: each has only to run.
const forLine = 50 * time.Millisecond

// awaitLine waits until somebody joins beyond so many, while goroutines stand in line that came before the
// grant: they would lose their place to others that came later. The mutex is held, and is free meanwhile. One
// that gives up leaves the line, and one that cannot join says so. So as a rule this takes as long as a
// goroutine takes to run.
func (t *tenure) awaitLine(joined int) {
	h, end := t.queue.half(true), time.Now().Add(forLine)
	for pause := 10 * time.Microsecond; t.joined == joined; pause = min(2*pause, time.Millisecond) {
		now := time.Now()
		if !t.joins || t.handOffs.handed >= 0 || h.line.IsEmpty() || h.holder.Load() != t || !t.admits(now) || !now.Before(end) {
			return
		}
		t.mu.Unlock()
		time.Sleep(pause)
		t.mu.Lock()
	}
}
