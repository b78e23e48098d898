package grant

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// turn is one goroutine's time in a tenure, with the holds that re-enter it.
type turn struct {
	tenure   *tenure
	token    int64
	sequence int64
	moment   time.Time   // since when it holds
	gave     int32       // how many permits the turn gave on, with the tenure; 0: none. Guarded like last
	had      atomic.Bool // its goroutine has got the turn, which the goroutine before made
	extras   *extras     // what few turns need; nil: nothing. Guarded like last
	last     *Hold       // the last in the chain of holds that are not unlocked. Guarded by the queue's mutex
	first    Hold

	previous, next *turn // in the chain of a shared tenure, guarded by the queue's mutex
}

// extras are what few turns need. Each local hand-off makes a turn, so a turn should be small.
type extras struct {
	leaves bool          // the turn is being detached: no caller re-enters
	slow   *session.Slow // nil: the logger does not report a slow hold
	wanted wanted
}

// extra returns the extras, which it makes if the turn has none. The caller holds the mutex.
func (u *turn) extra() *extras {
	if u.extras == nil {
		u.extras = &extras{}
	}
	return u.extras
}

// endExtras ends what the extras of the turn began. The caller holds the mutex.
func (u *turn) endExtras() {
	if u.extras != nil {
		u.stopWatching()
		u.extras.slow.End()
	}
}

func (u *turn) begin(parent context.Context) {
	u.first.Begin(parent, u)
	u.last = &u.first
}

// conclude takes h out of the turn, and ends the turn if h was its last hold. over is false if the caller must
// release the tenure in Redis.
func (u *turn) conclude(ctx context.Context, h *Hold, now time.Time) (over bool, err error) {
	t := u.tenure
	t.queue.mu.Lock()
	left, last, loss := u.leave(h)
	goesOn := last && loss == nil && u.stepDown(now)
	if last && loss == nil && !goesOn {
		t.become(wait.Releasing)
	}
	t.queue.mu.Unlock()
	trusted := loss != nil && t.queue.At.Client.HeldAtClose.Trusts(t) // the client was closed within the lease
	switch {
	case left && !last && (loss == nil || trusted):
		u.released() // other goroutines of this process still hold
		return true, nil
	case last && errors.Is(loss, fail.ErrClosed):
		return true, t.unlockLate(ctx, u)
	case errors.Is(loss, fail.ErrClosed) && !trusted:
		return true, hold.ErrClosedAndLost
	case loss != nil:
		if last {
			t.releaseLost(loss, u)
		}
		return true, loss
	case !last:
		return true, nil
	}
	if goesOn {
		u.released()
	}
	return goesOn, nil
}

// stepDown ends the last turn of a tenure. It reports whether the tenure goes on without a release. The caller holds
// the mutex.
func (u *turn) stepDown(now time.Time) (goesOn bool) {
	if u.tenure.queue.kind.Exclusive {
		return u.tenure.stepDown(now)
	}
	return u.tenure.giveOn(u, now)
}

// undo ends a turn whose goroutine gave up just as it got the turn. The next goroutine in line gets the tenure, or
// the tenure is parked or given back.
func (u *turn) undo() {
	t := u.tenure
	t.queue.mu.Lock()
	_, last, _ := u.leave(&u.first)
	loss := t.loss // no caller has this hold, so what the hold knows by the clock does not count
	over := last && loss == nil && !u.stepDown(time.Now())
	t.queue.mu.Unlock()
	switch {
	case over:
		t.discard()
	case last && errors.Is(loss, fail.ErrClosed): // the other turns have left the release to the last turn
		go func() { _ = t.sendLate(context.WithoutCancel(u.first.Parent()), u) }() // if that fails, the lease runs out
	}
}

// ErrUpgrade is documented by package rwlock.
var ErrUpgrade = errors.New("a read hold cannot become a write hold: two that try would wait for each other")

// reenter returns a further hold, or nil if the turn has just ended. It returns ErrUpgrade if a hold of p excludes
// others and the tenure may be shared. It returns ErrReentered if the terms of p forbid re-entry.
func (u *turn) reenter(parent context.Context, p *Primitive) (*Hold, error) {
	t := u.tenure
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if u.last == nil || u.extras != nil && u.extras.leaves || !t.owns() { // it is being released, or was lost
		return nil, nil //nolint:nilnil // which is no error
	}
	if !p.Shared && (t.shared || t.weak > 0) {
		return nil, ErrUpgrade
	}
	if p.terms.WithoutReentry {
		return nil, fail.ErrReentered
	}
	h := hold.New(parent, u)
	h.Chain(u.last)
	u.last = h
	return h, nil
}

// unlink takes the turn out of the chain of its tenure. The caller holds the queue's mutex.
func (u *turn) unlink() {
	if u.next != nil {
		u.next.previous = u.previous
	}
	if u.previous != nil {
		u.previous.next = u.next
	} else {
		u.tenure.turn = u.next
	}
	u.previous, u.next = nil, nil
}

// leave removes h. turnEnds: h was the last hold of its turn. nobodyLeft: no goroutine of this process is inside the
// tenure any more, so the caller must hand the tenure on, park it or release it. loss: why the tenure was lost; nil
// unless it was. The caller holds the queue's mutex.
func (u *turn) leave(h *Hold) (turnEnds, nobodyLeft bool, loss error) {
	t := u.tenure
	if u.last == h {
		u.last = h.Before()
	}
	for other := u.last; other != nil; other = other.Before() {
		if other.Before() == h {
			other.Chain(h.Before())
		}
	}
	if turnEnds = u.last == nil; turnEnds {
		u.endExtras()
	}
	nobodyLeft = turnEnds && (!t.shared || t.vacate(u))
	return turnEnds, nobodyLeft, t.lossOf(h)
}
