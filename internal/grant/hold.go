package grant

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Hold is what a caller gets from this engine: a [hold.Hold] that stands on a turn.
type Hold = hold.Hold

var _ hold.Backing = (*turn)(nil)

// turnOf returns the turn of a tenure's hold; nil for any other hold.
func turnOf(h *Hold) *turn {
	u, _ := h.Backing().(*turn)
	return u
}

// Alone returns the target of a hold that excludes all other holds of its name. For anything else it returns nil: a
// read hold, a hold that may be a read hold by now, permits, no hold, and a hold of another engine. No other hold has
// the token of an exclusive hold, so a store may refuse all smaller tokens.
func Alone(h *Hold) *session.Target {
	if h.None() {
		return nil
	}
	u := turnOf(h)
	if u == nil || !u.isLock() || !u.tenure.excludes() {
		return nil
	}
	return &u.tenure.queue.At
}

// isLock reports whether the turn is in a lock: the kind has one owner at a time, or readers.
func (u *turn) isLock() bool {
	kind := u.tenure.queue.kind
	return kind.Exclusive || kind.isSharable()
}

// The methods of [hold.Backing]. Wanted and WhenWanted are in wanted.go.

func (u *turn) HoldName() string { return u.tenure.name }

func (u *turn) Token() int64 { return u.token }

func (u *turn) Sequence() int64 { return u.sequence }

func (u *turn) LeftAt(moment time.Time) time.Duration { return u.tenure.item.LeftAt(moment) }

func (u *turn) Expire() error {
	why := u.tenure.item.Expiry()
	u.tenure.queue.At.Client.Keeper.Expire(&u.tenure.item)
	return why
}

func (u *turn) IsKey(key any) bool {
	q, ok := key.(*Queue)
	return ok && q == u.tenure.queue
}

func (u *turn) Release(ctx context.Context, h *Hold, now time.Time) error {
	if over, err := u.conclude(ctx, h, now); over {
		return err
	}
	return u.tenure.unlock(ctx, u)
}

func (u *turn) Lose(ctx context.Context, h *Hold, reason error) error {
	t := u.tenure
	ending := t.endingOf(&releasing{turn: u})
	ending.Rest = 0 // even if an Unlock would leave the lock taken for a while
	if !t.queue.At.Client.Keeper.Lose(&t.item, reason) {
		return fail.Join(h.Err(), fail.ErrNotHeld) // the hold has just ended
	}
	if _, err := t.queue.Commands.Release(session.WithoutDeadline(ctx), ending, t.Weight()); err != nil {
		return fail.WithSentinel(err)
	}
	return nil
}

func (u *turn) Record() (identity.Held, bool) {
	if !u.isLock() {
		return identity.Held{}, false
	}
	return identity.Held{Key: identity.Name(u.tenure.queue.At.Keys.Name()), Owner: identity.OwnerOf(u.tenure.waiter.Owner)}, true
}
