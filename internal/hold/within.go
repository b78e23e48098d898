package hold

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/identity"
)

// What follows is for package latchkeytest, with which our users test their programs: the only doors that it
// has to a hold. Nothing else calls them.

// holdsOf is the key under which each context of holds adds its own, and finds nothing.
type holdsOf struct{ holds []*Hold }

// HoldsOf returns the holds whose contexts ctx is derived from, the innermost first, also holds that have
// ended.
func HoldsOf(ctx context.Context) []*Hold {
	all := &holdsOf{}
	ctx.Value(all)
	return all.holds
}

// Collect is called by each context of holds that is asked for a key. For the key of [HoldsOf], and for
// [identity.HeldIn]'s, it adds them.
func Collect(key any, holds ...*Hold) {
	if all, ok := key.(*holdsOf); ok {
		all.holds = append(all.holds, holds...)
		return
	}
	for _, h := range holds {
		identity.Answer(key, func() (identity.Held, bool) {
			held, isLock := h.backing.Record()
			return held, isLock && h.Err() == nil
		})
	}
}

// ErrSeveral says that a hold has no lease of its own.
var ErrSeveral = errors.New("it is held on several servers")

// Lose ends the hold for this reason, with all that share its lease: re-entered holds, and readers of
// its process. Their contexts have ended when it returns. Only then it takes from Redis what they had there,
// in one attempt, so that the next waiter is granted it after they have ended, as after the end of a lease.
// It returns [ErrSeveral] for a hold of a lock over several servers, and why the hold has ended if it has.
func (h *Hold) Lose(ctx context.Context, reason error) error {
	if err := h.Err(); err != nil {
		return err
	}
	return h.backing.Lose(ctx, h, reason)
}
