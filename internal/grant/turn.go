package grant

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
)

// turn is one goroutine's time in a tenure, with the holds that re-enter it.
type turn struct {
	tenure   *tenure
	token    int64
	sequence int64
	moment   time.Time // since when it holds
	last     *Hold     // of those that are not unlocked; they are chained. Guarded by the tenure's mutex
	first    Hold

	previous, next *turn // in the chain of a shared tenure, guarded by its mutex
}

func (u *turn) begin(parent context.Context) {
	u.first = Hold{turn: u, parent: parent}
	u.last = &u.first
}

// reenter returns a further hold, or nil when the turn has ended meanwhile. It returns ErrUpgrade where the
// hold is to be its holder's alone, and the tenure may be shared; ErrReentered where that is not wanted.
func (u *turn) reenter(parent context.Context, p *Primitive) (*Hold, error) {
	t := u.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.last == nil || t.phase != held { // it is being released, or was lost
		return nil, nil //nolint:nilnil // which is no error
	}
	if !p.Shared && (t.shared || t.weak > 0) {
		return nil, ErrUpgrade
	}
	if p.terms.withoutReentry {
		return nil, session.ErrReentered
	}
	u.last = &Hold{turn: u, parent: parent, before: u.last}
	return u.last, nil
}

// unlink takes the turn out of the chain of its tenure, whose mutex is held.
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

// leave removes h, and reports whether it was the turn's last hold, whether the tenure ends with it or is
// handed off, and whether the tenure was lost.
func (u *turn) leave(h *Hold) (over, last bool, loss error) {
	t := u.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := &u.last; *p != nil; p = &(*p).before {
		if *p == h {
			*p = h.before
			break
		}
	}
	over = u.last == nil
	last = over && (!t.shared || t.vacate(u))
	return over, last, t.loss
}
