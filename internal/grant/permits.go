package grant

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lease"
)

// Permits returns how many permits h holds.
func Permits(h *Hold) int {
	if h.None() {
		return 0
	}
	u := turnOf(h)
	u.tenure.queue.mu.Lock()
	defer u.tenure.queue.mu.Unlock()
	if u.gave > 0 {
		return int(u.gave)
	}
	return u.tenure.permits
}

// ReleaseN gives back n of the permits of h. If n is all of them, ReleaseN is Unlock.
func ReleaseN(ctx context.Context, h *Hold, n int) error {
	if h.None() {
		return h.Err()
	}
	t := turnOf(h).tenure
	h.Look()
	t.parting.Lock() // one at a time: a release says how many permits stay, so that a copy of it changes nothing
	keep, err := keepsOf(h, n)
	if err == nil && keep == 0 {
		t.parting.Unlock()
		return h.Unlock(ctx)
	}
	defer t.parting.Unlock()
	if err == nil {
		err = partOf(ctx, h, keep)
	}
	if err != nil {
		return fail.Wrap(t.name, err)
	}
	return nil
}

// keepsOf returns how many permits stay if h gives back n, or why h cannot give back n. If some stay, no goroutine
// gives them on from now on.
func keepsOf(h *Hold, n int) (keep int, err error) {
	u := turnOf(h)
	t := u.tenure
	unlocked := h.IsUnlocked()
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	keep = t.permits - n
	switch over := unlocked || u.last == nil; { // permits that were given on belong to another hold
	case n < 1 || keep < 0 && !over:
		return 0, fail.Invalid("the number of permits must be from 1 to the %d that are held, not %d", keep+n, n)
	case over:
		return 0, fail.ErrNotHeld
	case t.loss != nil && keep > 0:
		return 0, t.loss
	}
	t.parted = t.parted || keep > 0
	return keep, nil
}

// partOf releases all permits of h except keep of them.
func partOf(ctx context.Context, h *Hold, keep int) error {
	t := turnOf(h).tenure
	err := t.see(ctx, &releasing{turn: turnOf(h), keep: keep})
	switch {
	case errors.Is(err, hold.ErrNotOurs) && h.IsUnlocked():
		return nil // a release of all permits was faster
	case errors.Is(err, hold.ErrNotOurs):
		t.queue.At.Client.Keeper.Lose(&t.item, lease.ErrGone)
	case err == nil, errors.Is(err, fail.ErrUnknownOutcome): // an unanswered release goes on
		t.queue.mu.Lock()
		t.permits = keep
		t.queue.mu.Unlock()
	}
	return err
}
