package rwlock

import (
	"context"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
)

// Downgrade turns a write hold into a read hold. No writer comes in between, and readers at the head of the queue get
// the lock. The hold, its context and its token stay. For a hold that reads already it does nothing.
//
// It is sent until Redis answers, ctx ends, or the lease does. After ErrUnknownOutcome call it again. It returns
// ErrInvalid for a hold of another lock, and for one that was re-entered; ErrLost and ErrNotHeld as Unlock does;
// ErrReleased if an Unlock comes first.
func Downgrade(ctx context.Context, hold *latchkey.Hold) error {
	return grant.Downgrade(ctx, (*grant.Hold)(hold))
}
