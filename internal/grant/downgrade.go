package grant

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lease"
)

// Downgrade makes h a shared hold, which goes on together with the other shared holds of the name.
func Downgrade(ctx context.Context, h *Hold) error {
	if h.None() {
		return h.Err()
	}
	u := turnOf(h)
	if u == nil || u.tenure.queue.kind.Downgrader == nil {
		return fail.Wrap(h.Name(), fail.Invalid("only a write hold of a read-write lock can be downgraded"))
	}
	t := u.tenure
	commands := t.queue.kind.Downgrader(t.queue)
	h.Look()
	t.parting.Lock() // one downgrade at a time
	defer t.parting.Unlock()
	done, err := beginDowngrade(h)
	if err != nil {
		return fail.Wrap(t.name, err)
	}
	if done {
		return nil
	}
	length := t.terms.Lease
	if !t.item.End.IsZero() { // by then the lock must be free in Redis, too
		length = min(length, max(time.Until(t.item.End), time.Millisecond))
	}
	audible := t.queue.Listening()
	var holds, others, stray bool
	for again := true; again; {
		limited, cancel := context.WithTimeout(ctx, t.item.Left())
		var sent bool
		sent, err = t.queue.At.Send(limited, t.queue.At.Client.Stopped, t.name, func(ctx context.Context) (err error) {
			holds, others, err = commands.Downgrade(ctx, t.waiter.Owner, u.token, length)
			return err
		})
		stray = stray || sent
		// A renewal may have succeeded since. Then there is time to send the command again.
		again = err != nil && limited.Err() != nil && ctx.Err() == nil && h.Err() == nil
		cancel()
	}
	switch lost := h.Err(); {
	case lost != nil:
		return lost
	case err != nil:
		if !stray {
			t.refuseDowngrade()
		}
		return err
	case !holds:
		t.queue.At.Client.Keeper.Lose(&t.item, lease.ErrGone)
		return h.Err()
	}
	t.goOnShared(audible, others)
	return nil
}

// beginDowngrade returns an error if the hold cannot be downgraded, and done if the tenure is shared already.
// Otherwise it marks the tenure as weak: from the moment when the command is sent, others may share the tenure, even
// if no answer comes. So no caller re-enters the tenure to write, and the next goroutine in line competes in Redis.
func beginDowngrade(h *Hold) (done bool, err error) {
	t := turnOf(h).tenure
	over := h.IsUnlocked()
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	switch {
	case over || turnOf(h).last == nil:
		return false, fail.ErrNotHeld
	case t.loss != nil:
		return false, t.loss
	case t.shared:
		return true, nil
	case turnOf(h).last != h || h.Before() != nil:
		return false, fail.Invalid("the write hold was re-entered: unlock the others first")
	}
	t.weak++
	if t.hasTurn {
		t.hasTurn = false
		t.queue.passTurn(&t.queue.alone.line)
	}
	return false, nil
}

// refuseDowngrade records that the last downgrade did nothing.
func (t *tenure) refuseDowngrade() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.weak--
}

// goOnShared makes an exclusive tenure a shared one, unless the process is releasing it. audible says whether the
// client would have heard during the whole downgrade that others wait.
func (t *tenure) goOnShared(audible, others bool) {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.owns() && t.turn != nil && t.turn.last != nil {
		t.shared, t.audible = true, audible && t.terms.Sharable()
		if others {
			t.contendNow()
		}
		t.share()
	}
	if q.alone.holder == t {
		q.alone.holder = nil
	}
}
