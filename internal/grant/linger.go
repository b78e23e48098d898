package grant

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// Lingering: how a lock stays with its process without a hold.
//
// When the last hold has ended and the line is empty, Unlock parks the tenure in the line. A goroutine that comes
// next has it at once, as in a local hand-off. Redis knows of no difference: it has an owner, whose lease is
// renewed.
//
// That must not keep others waiting. The token field says that the lock may linger. So a client that finds it taken
// tells the owner, and the owner releases what is parked at once. A tenure that could not hear of that is not
// parked. The message can be lost. So it ends at a time in any case, which counts from when it was parked
// first: other uses in between do not put it off. Then the timer releases it, or its user offers it.
// Where others ask each time before it is used here again, it seldom lingers: see worth.

// stay is what a tenure must know to linger. It is guarded by the mutex of its queue.
type stay struct {
	span  time.Duration // for how long it may linger, on the terms of its last turn
	until time.Time     // when that ends; zero before it was parked. Set once
	spare bool          // it was not used since it was parked
	left  chan struct{} // closed when what was parked is released; nil before it is being released. From then on it counts as one that waits
}

// mayPark reports whether a tenure without a hold may stay. The mutex is held. Where the timer is set for
// its end, the clock need not be read: should that be over just now, the timer finds what is parked. One
// without tokens would be of no use to the next goroutine, and Redis may not have told it that others wait.
func (t *tenure) mayPark() bool {
	s := &t.stay
	return s.span != 0 && t.waiter.Demand.Lingers && t.owns() && t.handOffs.reserved > 0 && t.handOffs.contendedSince.IsZero() &&
		t.queue.At.Client.Closing.Err() == nil && (s.until.IsZero() || t.queue.parkedAlarm.isSetBy(s.until) || time.Until(s.until) > 0)
}

// park leaves in the line a tenure that mayPark allows. It reports false, and does nothing, if another goroutine
// competes, if a tenure is parked there already, or if a message may have been missed which says that others want
// the lock. The caller has the mutex, as endDeaf has: so endDeaf, which runs when messages arrive again, finds what
// was parked before it.
func (t *tenure) park() bool {
	q := t.queue
	l := &q.alone.line
	if l.taken || l.parked != nil || q.hearing() != t.heard {
		return false
	}
	l.parked, t.stay.spare = t, true
	t.become(wait.Parked)
	if t.stay.until.IsZero() {
		t.stay.until = time.Now().Add(t.stay.span)
	}
	q.endsAt(t.stay.until)
	return true
}

// takeParked takes the turn of the line with what is parked there. It reports false when nothing is.
func (p *Primitive) takeParked(parent context.Context) (gift, bool) {
	q := p.Queue
	if p.Shared || !q.kind.Exclusive {
		return gift{}, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.alone.line.parked == nil {
		return gift{}, false
	}
	w := wish{primitive: p, parent: parent}
	g := w.givenTurn(q.alone.line.take(), time.Now())
	if g.hold != nil {
		turnOf(g.hold).had.Store(true)
	}
	return g, true
}

// unpark takes the tenure out of the line, if it is parked there. It reports whether it was: then no goroutine
// comes to have it. The mutex is held.
func (t *tenure) unpark() bool {
	l := &t.queue.alone.line
	if l.parked != t {
		return false
	}
	l.parked = nil
	return true
}

// mayLinger reports whether the next tenure shall linger.
func (q *Queue) mayLinger() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.worth.linger()
}

// vain is for how long an inbox is not waited for again after a wait for it was in vain.
const vain = time.Second

// awaitHearing waits a moment until the client hears of the name: else what is taken now could not linger.
// The lock is to be had without. So it leaves half of the time to the attempt, and while the subscription is
// down one of many waits.
func (q *Queue) awaitHearing(waits context.Context) {
	now := time.Now()
	q.mu.Lock()
	deaf := now.Before(q.deaf)
	q.mu.Unlock()
	if deaf {
		return
	}
	if end, ok := waits.Deadline(); ok {
		var cancel context.CancelFunc
		waits, cancel = context.WithDeadline(waits, now.Add(end.Sub(now)/2))
		defer cancel()
	}
	if !q.awaitInbox(waits) && time.Since(now) >= forInbox { // else the caller had no time for it
		q.mu.Lock()
		q.deaf = time.Now().Add(vain)
		q.mu.Unlock()
	}
}

// endsAt has what is parked end at that time. As a rule an Unlock sets no timer: one that is set for an
// earlier time looks at what is parked then. The mutex is held.
func (q *Queue) endsAt(until time.Time) {
	if !q.parkedAlarm.isSetBy(until) { // else the bound method would be an object for each Unlock
		q.parkedAlarm.setBy(until, q.endParked)
	}
}

// endParked releases what is parked if its time is over, or looks again when it will be.
func (q *Queue) endParked() {
	q.mu.Lock()
	q.parkedAlarm.rung()
	t := q.alone.line.parked
	over := t != nil && !time.Now().Before(t.stay.until)
	if t != nil && !over {
		q.endsAt(t.stay.until)
	}
	q.mu.Unlock()
	if over {
		t.leaveParked()
	}
}

// LeaveParked releases what is parked.
func (q *Queue) LeaveParked() {
	q.mu.Lock()
	t := q.alone.line.parked
	q.mu.Unlock()
	if t != nil {
		t.leaveParked()
	}
}

// endDeaf has a tenure that may linger end as if others wanted it, if its process may have missed that they
// do.
func (q *Queue) endDeaf() {
	t := q.holder()
	if t != nil && t.waiter.Demand.Lingers && t.heard != q.hearing() {
		t.contend()
		t.leaveParked()
	}
}

// wanted is told that others want what the tenure has.
func (t *tenure) wanted() {
	t.contend()
	if t.leaveParked() {
		t.queue.mu.Lock()
		t.queue.worth.wanted()
		t.queue.mu.Unlock()
	}
}

// leaveParked releases the tenure in the background, if it is parked: from now on no goroutine here can have it. It
// does not block, and reports whether it was parked.
func (t *tenure) leaveParked() bool {
	left := make(chan struct{})
	t.queue.mu.Lock() // a goroutine that finds it neither parked nor held finds what to wait for
	unparked := t.unpark()
	if unparked {
		t.become(wait.Releasing)
		t.stay.left = left
		t.queue.At.Client.Count(1, -1) // Shutdown has the patience for it that it has for waits
	}
	t.queue.mu.Unlock()
	if !unparked {
		return false
	}
	t.queue.At.Client.Go(func() {
		defer close(left)
		if !t.queue.At.Client.Keeper.Remove(&t.item) {
			t.finish()
			return
		}
		// That it was taken away ends no hold.
		if _, err := t.release(context.Background(), &releasing{}); err != nil && !errors.Is(err, fail.ErrLost) {
			t.queue.At.Client.Options.Logger.Info("latchkey: a lock that nobody held was not released", "name", t.name, "error", err)
		}
	})
	return true
}

// awaitLeaving waits until the release of what was parked, and the cancels of waiters that gave up, have reached
// Redis. The lock has no holder and no waiter then. An attempt that reaches Redis before is refused without
// need.
func (q *Queue) awaitLeaving(waits context.Context) {
	left := q.leaving()
	if left == nil && !q.waiters.Departing() {
		return
	}
	limited, cancel := context.WithTimeout(waits, forAnswer)
	defer cancel()
	if left != nil {
		select {
		case <-left:
		case <-limited.Done():
		case <-q.At.Client.Closing.Done():
		}
	}
	q.waiters.AwaitDepartures(limited)
}

// leaving is closed when what was parked here is released; nil when nothing is being released.
func (q *Queue) leaving() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.alone.holder; t != nil {
		return t.stay.left
	}
	return nil
}

// holder is the tenure that this process holds alone, or has parked; nil when there is none.
func (q *Queue) holder() *tenure {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.alone.holder
}

// How long an attempt waits until an owner that may linger says that it holds the lock, or has released it. If no
// such answer can arrive, the attempt pauses for as long as an owner takes to release.
const (
	forAnswer  = 50 * time.Millisecond
	withoutOne = 10 * time.Millisecond
)

func (q *Queue) patience() time.Duration {
	if c := q.At.Client; c.Inbox != nil && c.Inbox.Up() {
		return forAnswer
	}
	return withoutOne
}

// answer tells the client that sent an attempt that the tenure was held, or when it is released.
func (t *tenure) answer(m lua.Message) {
	t.queue.mu.Lock()
	left := t.stay.left
	t.queue.mu.Unlock()
	if left != nil && !session.ClosedWithin(left, forAnswer) {
		return // no attempt waits for it any more
	}
	t.queue.At.Client.Answer(m)
}

// Lingers reports whether this owner, of this client, has the lock without a hold.
func (q *Queue) Lingers(owner string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.alone.holder
	return t != nil && t.waiter.Owner == owner && t.stay.spare
}

// alarm calls a function at the earliest of the times that it was set for. The zero value is not set. The
// mutex of the queue guards it.
type alarm struct {
	at    time.Time // zero: it is not set
	timer *time.Timer
}

// isSetBy reports whether f is called at that time or before.
func (a *alarm) isSetBy(at time.Time) bool { return !a.at.IsZero() && !a.at.After(at) }

// setBy has f called at that time or before.
func (a *alarm) setBy(at time.Time, f func()) {
	if a.isSetBy(at) {
		return
	}
	if a.timer != nil {
		a.timer.Stop() // it may be ringing: then f is called once more, and rung
	}
	a.at = at
	a.timer = time.AfterFunc(time.Until(at), f)
}

// rung is told by f that it was called. After that the alarm can be set again.
func (a *alarm) rung() { a.at = time.Time{} }
