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
	gave     int32       // so many permits it gave on, with the tenure; 0: it did not. Guarded as last is
	had      atomic.Bool // its goroutine has got it: it was made by the one before
	extras   *extras     // what few turns have; nil: none of it. Guarded as last is
	last     *Hold       // of the holds that are not unlocked, which are chained. Guarded by the mutex of the queue
	first    Hold

	previous, next *turn // in the chain of a shared tenure, guarded by the queue's mutex
}

// extras are what few turns have. Each local hand-off makes a turn, so one should be small.
type extras struct {
	leaves bool          // it is being detached: no caller re-enters
	slow   *session.Slow // nil: the logger is not told of it
	wanted wanted
}

// extra makes it where there is none. The mutex is held.
func (u *turn) extra() *extras {
	if u.extras == nil {
		u.extras = &extras{}
	}
	return u.extras
}

// endExtras ends what it has. The mutex is held.
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

// conclude takes h out of the turn, which it may end with it. It reports false when the tenure must be
// released in Redis.
func (u *turn) conclude(ctx context.Context, h *Hold, now time.Time) (over bool, err error) {
	t := u.tenure
	t.queue.mu.Lock()
	left, last, loss := u.leave(h)
	goesOn := last && loss == nil && u.stepDown(now)
	if last && loss == nil && !goesOn {
		t.become(wait.Releasing)
	}
	t.queue.mu.Unlock()
	switch {
	case left && !last && (loss == nil || !t.queue.At.Client.HeldAtClose.TrustedUntil(t).IsZero()):
		u.released() // others of this process hold on
		return true, nil
	case last && errors.Is(loss, fail.ErrClosed):
		return true, t.unlockLate(ctx, u)
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

// stepDown ends the last turn of a tenure. It reports whether the tenure goes on without a release. The
// mutex is held.
func (u *turn) stepDown(now time.Time) (goesOn bool) {
	if u.tenure.queue.kind.Exclusive {
		return u.tenure.stepDown(now)
	}
	return u.tenure.giveOn(u, now)
}

// undo ends a turn whose goroutine has given up as it got it. The next in line has it, or it is parked or
// given back.
func (u *turn) undo() {
	t := u.tenure
	t.queue.mu.Lock()
	_, last, _ := u.leave(&u.first)
	loss := t.loss // no caller has this hold, so what it knows by the clock does not count
	over := last && loss == nil && !u.stepDown(time.Now())
	t.queue.mu.Unlock()
	switch {
	case over:
		t.discard()
	case last && errors.Is(loss, fail.ErrClosed): // those before it have left the release to the last
		go func() { _ = t.sendLate(context.WithoutCancel(u.first.Parent()), u) }() // else its lease runs out
	}
}

// ErrUpgrade is documented by package rwlock.
var ErrUpgrade = errors.New("a read hold cannot become a write hold: two that try would wait for each other")

// reenter returns a further hold, or nil when the turn has just ended. It returns ErrUpgrade where the
// hold is to be its holder's alone, and the tenure may be shared; ErrReentered where that is not wanted.
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

// unlink takes the turn out of the chain of its tenure, with the mutex of the queue.
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

// leave removes h. turnEnds: h was the last hold of its turn. nobodyLeft: no goroutine of this process is inside
// the tenure any more, so the caller must hand it on, park it or release it. loss: why the tenure was lost;
// nil unless it was. The mutex of the queue is held.
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
