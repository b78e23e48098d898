package grant

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lease"
)

// Permits is how many are held.
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

// ReleaseN gives back n of the permits; all of them is Unlock.
func ReleaseN(ctx context.Context, h *Hold, n int) error {
	if h.None() {
		return h.Err()
	}
	t := turnOf(h).tenure
	h.Look()
	t.parting.Lock() // how many stay is told to Redis, so that a copy changes nothing: one after the other
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

// keeps returns how many permits stay when n are given back, or why they cannot be. If some stay, they are
// not given on from now on.
func keepsOf(h *Hold, n int) (keep int, err error) {
	u := turnOf(h)
	t := u.tenure
	unlocked := h.IsUnlocked()
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	keep = t.permits - n
	switch over := unlocked || u.last == nil; { // what was given on is another hold's
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

// part releases all permits but the ones that are kept.
func partOf(ctx context.Context, h *Hold, keep int) error {
	t := turnOf(h).tenure
	err := t.see(ctx, &releasing{turn: turnOf(h), keep: keep})
	switch {
	case errors.Is(err, hold.ErrNotOurs) && h.IsUnlocked():
		return nil // a release of all of them was faster
	case errors.Is(err, hold.ErrNotOurs):
		t.queue.At.Client.Keeper.Lose(&t.item, lease.ErrGone)
	case err == nil, errors.Is(err, fail.ErrUnknownOutcome): // it goes on
		t.queue.mu.Lock()
		t.permits = keep
		t.queue.mu.Unlock()
	}
	return err
}
