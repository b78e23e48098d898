package hold

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/identity"
)

// The functions below are for package latchkeytest, with which our users test their programs. HoldsOf and Lose are
// the only access of latchkeytest to a hold. Nothing else calls them.

// holdsOf is a key for Value. The context of each hold adds its hold to holds. No context has a value for the key.
type holdsOf struct{ holds []*Hold }

// HoldsOf returns the holds whose contexts ctx is derived from, the innermost first, also holds that have
// ended.
func HoldsOf(ctx context.Context) []*Hold {
	all := &holdsOf{}
	ctx.Value(all)
	return all.holds
}

// Collect adds holds to the answer if key is the key of [HoldsOf] or of [identity.HeldIn]. Each context of holds
// calls Collect when a caller asks for the value of a key.
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

// Lose ends the hold for reason, with all holds that share its lease: re-entered holds, and readers of its process.
// When their contexts have ended, Lose takes from Redis what the holds had there, in one attempt. So Redis grants it
// to the next waiter only after the holds have ended, as after the end of a lease. For a hold of a lock over several
// servers, Lose returns [ErrSeveral]. For a hold that has ended, Lose returns why.
func (h *Hold) Lose(ctx context.Context, reason error) error {
	if err := h.Err(); err != nil {
		return err
	}
	return h.backing.Lose(ctx, h, reason)
}
