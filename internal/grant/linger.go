package grant

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Lingering: how a lock stays with its process while nobody holds it.
//
// When the last hold has ended and nobody stands in line, Unlock parks the tenure in the line. Whoever comes
// next has it at once, as in a local hand-off. Redis knows of no difference: it has an owner, whose lease is
// renewed.
//
// That must not keep others waiting. The token field says that the lock may linger. So whoever finds it taken
// tells the owner, and the owner releases what is parked at once. A tenure that could not hear of that is not
// parked. The message can be lost. So it ends at a time in any case, which counts from when it was parked
// first: other uses in between do not put it off. Then the timer releases it, or whoever uses it offers it.
// Where others ask each time before it is used here again, it seldom lingers: see worth.

// stay is what a tenure must know to linger. It is guarded by its mutex.
type stay struct {
	span   time.Duration // for how long it may linger, on the terms of its last turn
	until  time.Time     // when that ends; zero before it was parked. Set once
	parked bool          // nobody holds it; also while it is taken, or released
	over   bool          // it counts as one that waits, as what was held does until it is forgotten
	left   chan struct{} // closed when it was released; nil before it is being released
}

// mayPark reports whether a tenure that nobody holds may stay. The mutex is held. Where the timer is set for
// its end, the clock need not be read: should that be over just now, the timer finds what is parked. One
// without tokens would be of no use to whoever comes, and Redis may not have told it that others wait.
func (t *tenure) mayPark() bool {
	s := &t.stay
	return s.span != 0 && t.phase == held && t.handOffs.reserved > 0 && t.handOffs.contended.IsZero() && t.queue.At.Client.Closing.Err() == nil &&
		(s.until.IsZero() || t.queue.ends.isSetBy(s.until) || time.Until(s.until) > 0)
}

// park leaves a tenure that may be parked in the line, or passes it to the next there. If it does neither,
// the caller must release it. The mutex is held. Whether the process hears is looked at last: so when it
// hears again, either endDeaf finds the tenure, or it is not left here.
func (t *tenure) park(inLine bool) (passed, parked bool) {
	passed, parked = t.queue.alone.line.Park(t, inLine)
	if !parked || t.queue.hearing() != t.heard && t.queue.alone.line.Unpark(t) {
		return passed, false
	}
	t.stay.parked = true
	if t.stay.until.IsZero() {
		t.stay.until = time.Now().Add(t.stay.span)
	}
	return false, true
}

// takeParked takes the turn of the line with what is parked there. It reports false when nothing is.
func (p *Primitive) takeParked() (*tenure, bool) {
	if p.Shared || !p.Queue.kind.Exclusive {
		return nil, false
	}
	return p.Queue.alone.line.EnterParked()
}

// vain is how long nobody waits for an inbox again that was waited for in vain.
const vain = time.Second

// awaitHearing waits a moment until the client hears of the name: else what is taken now could not linger.
// The lock is to be had without. So it leaves half of the time to the attempt, and while the subscription is
// down one of many waits.
func (q *Queue) awaitHearing(waits context.Context) {
	now := time.Now()
	if now.UnixNano() < q.deaf.Load() {
		return
	}
	if end, ok := waits.Deadline(); ok {
		var cancel context.CancelFunc
		waits, cancel = context.WithDeadline(waits, now.Add(end.Sub(now)/2))
		defer cancel()
	}
	if !q.awaitInbox(waits) && time.Since(now) >= forInbox { // else the caller had no time for it
		q.deaf.Store(time.Now().Add(vain).UnixNano())
	}
}

// endsAt has what is parked end at that time. As a rule an Unlock sets no timer: one that is set for an
// earlier time looks at what is parked then.
func (q *Queue) endsAt(until time.Time) {
	if !q.ends.isSetBy(until) { // else the bound method would be an object for each Unlock
		q.ends.setBy(until, q.endParked)
	}
}

// endParked releases what is parked if its time is over, or looks again when it will be.
func (q *Queue) endParked() {
	q.ends.rung() // before it looks: whoever parks something after that sets the alarm
	t := q.alone.line.Parked()
	if t == nil {
		return
	}
	t.mu.Lock()
	until := t.stay.until
	t.mu.Unlock()
	if time.Now().Before(until) {
		q.endsAt(until)
		return
	}
	t.leaveParked()
}

// LeaveParked releases what is parked.
func (q *Queue) LeaveParked() {
	if t := q.alone.line.Parked(); t != nil {
		t.leaveParked()
	}
}

// endDeaf has a tenure that may linger end as if others wanted it, if its process may have missed that they
// do.
func (q *Queue) endDeaf() {
	if t := q.alone.holder.Load(); t != nil && t.waiter.Demand.Lingers && t.heard != q.hearing() {
		t.contend()
		t.leaveParked()
	}
}

// wanted is told that others want what the tenure has.
func (t *tenure) wanted() {
	t.contend()
	if t.leaveParked() {
		t.queue.worth.wanted()
	}
}

// leaveParked releases the tenure in the background, if it is parked: from now on nobody here can have it. It
// does not block, and reports whether it was parked.
func (t *tenure) leaveParked() bool {
	left := make(chan struct{})
	t.mu.Lock() // whoever finds it neither parked nor held finds what to wait for
	unparked := t.queue.alone.line.Unpark(t)
	if unparked {
		t.stay.left = left
	}
	t.mu.Unlock()
	if !unparked {
		return false
	}
	t.countAsOver() // Shutdown has the patience for it that it has for waits
	t.queue.At.Client.Go(func() {
		defer close(left)
		if !t.queue.At.Client.Keeper.Remove(&t.item) {
			t.finish(lost, false)
			return
		}
		// That it was taken away is nobody's loss.
		if err := t.release(context.Background(), &release{}); err != nil && !errors.Is(err, session.ErrLost) {
			t.queue.At.Client.Options.Logger.Info("latchkey: a lock that nobody held was not released", "name", t.name, "error", err)
		}
	})
	return true
}

// awaitLeaving waits for what is under way here of those that do not want the lock any more: the release of
// what was parked, and the cancels of those that gave up waiting. Nobody holds the lock, and nobody is next.
// So an attempt that reaches Redis before would be refused for nobody's sake.
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
	t := q.alone.holder.Load()
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stay.left
}

// How long an attempt waits for the answer of an owner that may linger. Where no answer can arrive, it pauses
// for as long as such an owner should take.
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

// answer tells whoever sent an attempt that the tenure was held, or when it is released.
func (t *tenure) answer(m lua.Message) {
	t.mu.Lock()
	left := t.stay.left
	t.mu.Unlock()
	if left != nil && !session.ClosedWithin(left, forAnswer) {
		return // nobody waits for it any more
	}
	t.queue.At.Client.Answer(m)
}

// Lingers reports whether what this owner has, of this client, is held by nobody.
func (q *Queue) Lingers(owner string) bool {
	t := q.alone.holder.Load()
	if t == nil || t.waiter.Owner != owner {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stay.parked
}

// countAsOver counts a tenure that was held as one that waits.
func (t *tenure) countAsOver() {
	t.mu.Lock()
	counted := t.stay.over
	t.stay.over = true
	t.mu.Unlock()
	if !counted {
		t.queue.At.Client.Count(1, -1)
	}
}

// stayEnded is told that the tenure is over. It is called once.
func (t *tenure) stayEnded() {
	t.countAsOver()
	if t.waiter.Demand.Lingers {
		t.queue.exit()
	}
}
