package grant

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/session"
)

// ErrUpgrade is documented by package rwlock.
var ErrUpgrade = errors.New("a read hold cannot become a write hold: two that try would wait for each other")

// Downgrade has the hold go on together with others of its half and kind.
func (h *Hold) Downgrade(ctx context.Context) error {
	if h.none() {
		return h.Err()
	}
	t := h.turn.tenure
	commands, ok := t.Commands.(Downgrader)
	if !ok {
		return session.Wrap(t.name, session.Invalid("only a write hold of a read-write lock can be downgraded"))
	}
	h.look()
	t.parting.Lock() // one after the other
	defer t.parting.Unlock()
	done, err := h.downgraded()
	if err != nil {
		return session.Wrap(t.name, err)
	}
	if done {
		return nil
	}
	t.leaveLine() // whether it is answered or not: who holds next must not hold what others share
	limited, cancel := context.WithTimeout(ctx, t.item.Left())
	defer cancel()
	audible := t.Listening()
	var holds, others bool
	_, err = t.Send(limited, t.Client.Stopped, t.name, func(ctx context.Context) (err error) {
		holds, others, err = commands.Downgrade(ctx, t.waiter.Owner, t.terms.lease)
		return err
	})
	switch lost := h.Err(); {
	case lost != nil:
		return lost
	case err != nil:
		return err
	case !holds:
		t.Client.Keeper.Lose(&t.item, lease.ErrGone)
		return h.Err()
	}
	h.goOnShared(audible, others)
	return nil
}

// downgraded reports whether the hold is shared already, and why it cannot be downgraded.
func (h *Hold) downgraded() (done bool, err error) {
	t := h.turn.tenure
	over := h.isUnlocked()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case over:
		return false, session.ErrNotHeld
	case t.loss != nil:
		return false, t.loss
	case t.shared:
		return true, nil
	case h.turn.last != h || h.before != nil:
		return false, session.Invalid("the write hold was re-entered: unlock the others first")
	default:
		return false, nil
	}
}

// leaveLine ends the local hand-off: the next in line competes in Redis.
func (t *tenure) leaveLine() {
	t.mu.Lock()
	inLine := t.inLine
	t.inLine = false
	t.mu.Unlock()
	if inLine {
		t.alone.line.Pass(nil)
	}
}

// goOnShared has a tenure that was its holder's alone go on as a shared one, unless the hold was unlocked
// meanwhile. audible says whether its process has heard all the while that others wait.
func (h *Hold) goOnShared(audible, others bool) {
	t := h.turn.tenure
	t.mu.Lock()
	if t.phase == held && h.turn.last == h {
		t.shared, t.audible = true, audible && t.terms.sharable()
		if others {
			t.contendNow()
		}
		t.share()
	}
	t.mu.Unlock()
	t.alone.holder.CompareAndSwap(t, nil)
}
