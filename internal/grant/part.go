package grant

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Permits is how many are held.
func (h *Hold) Permits() int {
	if h.none() {
		return 0
	}
	t := h.turn.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.permits
}

// ReleaseN gives back n of the permits; all of them is Unlock.
func (h *Hold) ReleaseN(ctx context.Context, n int) error {
	if h.none() {
		return h.Err()
	}
	t := h.turn.tenure
	h.look()
	t.parting.Lock() // how many stay is told to Redis, so that a copy changes nothing: one after the other
	t.mu.Lock()
	h.mu.Lock()
	over := h.unlocked
	h.mu.Unlock()
	keep, loss := t.permits-n, t.loss
	t.mu.Unlock()
	if keep == 0 && !over {
		t.parting.Unlock()
		return h.Unlock(ctx)
	}
	defer t.parting.Unlock()
	switch {
	case n < 1 || keep < 0 && !over:
		return session.Wrap(t.name, session.Invalid("the number of permits must be from 1 to the %d that are held, not %d", keep+n, n))
	case over:
		return session.Wrap(t.name, session.ErrNotHeld)
	case loss != nil:
		return session.Wrap(t.name, loss)
	}
	err := t.see(ctx, &release{turn: h.turn, keep: keep})
	h.mu.Lock()
	over = h.unlocked
	h.mu.Unlock()
	switch {
	case errors.Is(err, errNotOurs) && over:
		return nil // a release of all of them was faster
	case errors.Is(err, errNotOurs):
		t.Client.Keeper.Lose(&t.item, lease.ErrGone)
	case err == nil, errors.Is(err, session.ErrUnknownOutcome): // it goes on
		t.mu.Lock()
		t.permits = keep
		t.mu.Unlock()
	}
	if err != nil {
		return session.Wrap(t.name, err)
	}
	return nil
}
