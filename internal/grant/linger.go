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
// If the line is empty when the last hold ends, Unlock parks the tenure in the line. The next goroutine that comes
// gets the tenure at once, as in a local hand-off. Redis sees no difference: the lock has an owner, whose lease is
// renewed.
//
// A parked tenure must not keep others waiting. The token field says that the lock may linger. So a client that finds
// the lock taken tells the owner, and the owner releases a parked tenure at once. A tenure that could not hear this
// message is not parked. The message can be lost. So the lingering ends at a fixed time in any case. That time counts
// from the first parking: later uses do not put it off. Then the timer releases the tenure, or the goroutine that
// uses the tenure offers it. If others ask for the lock each time before this process uses it again, the lock seldom
// lingers: see worth.

// stay is what a tenure must know to linger. The queue's mutex guards it.
type stay struct {
	span  time.Duration // how long the tenure may linger, by the terms of its last turn
	until time.Time     // when the lingering ends; zero: the tenure was never parked. Set once
	spare bool          // no goroutine has used the tenure since it was parked
	// left is closed when the release of the parked tenure is over. It is nil until that release begins. From then on
	// the tenure counts as a waiter.
	left chan struct{}
}

// mayPark reports whether a tenure without a hold may be parked. If the timer is set for the end of the lingering or
// before, mayPark does not read the clock: if that end has just passed, the timer finds the parked tenure. A tenure
// without reserved tokens is not parked: it has no token for the next goroutine, and Redis may not have told it that
// others wait. The caller holds the mutex.
func (t *tenure) mayPark() bool {
	s := &t.stay
	return s.span != 0 && t.waiter.Demand.Lingers && t.owns() && t.handOffs.reserved > 0 && t.handOffs.contendedSince.IsZero() &&
		t.queue.At.Client.Closing.Err() == nil && (s.until.IsZero() || t.queue.parkedAlarm.isSetBy(s.until) || time.Until(s.until) > 0)
}

// park leaves a tenure in the line, if mayPark has allowed that. If another goroutine has the turn, if another tenure
// is parked, or if the client may have missed the message that others want the lock, park does nothing and reports
// false. The caller holds the mutex. endDeaf runs when messages arrive again, and takes the same mutex: so endDeaf
// finds a tenure that was parked before.
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

// takeParked takes the turn of the line, with the tenure that is parked there. It reports false if no tenure is
// parked.
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

// unpark takes the tenure out of the line, and reports whether the tenure was parked there. After that no goroutine
// can get the tenure. The caller holds the mutex.
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

// vain is how long no goroutine waits for the inbox again after a wait for the inbox was in vain.
const vain = time.Second

// awaitHearing waits a moment until the client hears of the name. Otherwise a tenure that is taken now could not
// linger. But the attempt can take the lock without lingering. So awaitHearing leaves half of the time to the
// attempt. While the subscription is down, one attempt of many waits.
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
	if !q.awaitInbox(waits) && time.Since(now) >= forInbox { // else the caller had no time to wait
		q.mu.Lock()
		q.deaf = time.Now().Add(vain)
		q.mu.Unlock()
	}
}

// endsAt makes the lingering of the parked tenure end at until. As a rule an Unlock sets no timer: a timer that is
// set for an earlier time looks at the parked tenure then. The caller holds the mutex.
func (q *Queue) endsAt(until time.Time) {
	if !q.parkedAlarm.isSetBy(until) { // else each Unlock would allocate the method value
		q.parkedAlarm.setBy(until, q.endParked)
	}
}

// endParked releases the parked tenure if its time is over. Otherwise it sets the timer for that time.
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

// LeaveParked releases the parked tenure.
func (q *Queue) LeaveParked() {
	q.mu.Lock()
	t := q.alone.line.parked
	q.mu.Unlock()
	if t != nil {
		t.leaveParked()
	}
}

// endDeaf treats a tenure that may linger as wanted by others, if this process may have missed the message that says
// so.
func (q *Queue) endDeaf() {
	t := q.holder()
	if t != nil && t.waiter.Demand.Lingers && t.heard != q.hearing() {
		t.contend()
		t.leaveParked()
	}
}

// wanted takes the news that others want what the tenure has.
func (t *tenure) wanted() {
	t.contend()
	if t.leaveParked() {
		t.queue.mu.Lock()
		t.queue.worth.wanted()
		t.queue.mu.Unlock()
	}
}

// leaveParked releases the tenure in the background, if it is parked: from now on no goroutine here can have the
// tenure. leaveParked does not block, and reports whether the tenure was parked.
func (t *tenure) leaveParked() bool {
	left := make(chan struct{})
	t.queue.mu.Lock() // a goroutine that finds the tenure neither parked nor held finds stay.left to wait for
	unparked := t.unpark()
	if unparked {
		t.become(wait.Releasing)
		t.stay.left = left
		t.queue.At.Client.Count(1, -1) // Shutdown waits for the release as it does for waits
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
		// ErrLost says that the tenure was taken away. That ends no hold.
		if _, err := t.release(context.Background(), &releasing{}); err != nil && !errors.Is(err, fail.ErrLost) {
			t.queue.At.Client.Options.Logger.Info("latchkey: a lock that nobody held was not released", "name", t.name, "error", err)
		}
	})
	return true
}

// awaitLeaving waits until the release of the parked tenure, and the cancels of waiters that gave up, have reached
// Redis. Then the lock has no holder and no waiter of this process. Redis would refuse an earlier attempt without
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

// leaving returns a channel that is closed once the parked tenure is released; nil if no tenure is being released.
func (q *Queue) leaving() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.alone.holder; t != nil {
		return t.stay.left
	}
	return nil
}

// holder returns the tenure that this process holds alone, or has parked; nil: no tenure.
func (q *Queue) holder() *tenure {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.alone.holder
}

// forAnswer is how long an attempt waits for an owner that may linger to say that it holds the lock, or has released
// it. withoutOne is how long the attempt pauses if no answer can arrive: as long as an owner takes to release.
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

// answer tells the client that sent an attempt to ask again: at once if the tenure is held, else once it is released.
func (t *tenure) answer(m lua.Message) {
	t.queue.mu.Lock()
	left := t.stay.left
	t.queue.mu.Unlock()
	if left != nil && !session.ClosedWithin(left, forAnswer) {
		return // the attempt no longer waits for the answer
	}
	t.queue.At.Client.Answer(m)
}

// Lingers reports whether owner, an owner id of this client, has the lock without a hold.
func (q *Queue) Lingers(owner string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.alone.holder
	return t != nil && t.waiter.Owner == owner && t.stay.spare
}

// alarm calls a function at the earliest time for which it was set. The zero value is not set. The queue's mutex
// guards an alarm.
type alarm struct {
	at    time.Time // zero: it is not set
	timer *time.Timer
}

// isSetBy reports whether the alarm calls its function at that time or before.
func (a *alarm) isSetBy(at time.Time) bool { return !a.at.IsZero() && !a.at.After(at) }

// setBy makes the alarm call f at that time or before.
func (a *alarm) setBy(at time.Time, f func()) {
	if a.isSetBy(at) {
		return
	}
	if a.timer != nil {
		a.timer.Stop() // if the timer has just fired, f runs once more, and calls rung
	}
	a.at = at
	a.timer = time.AfterFunc(time.Until(at), f)
}

// rung notes that the alarm has called its function. That function calls rung. After that a caller can set the alarm
// again.
func (a *alarm) rung() { a.at = time.Time{} }
