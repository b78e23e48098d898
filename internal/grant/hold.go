package grant

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Hold is the inside of the root package's Hold, and of semaphore.Permits. Its methods are safe for
// concurrent use. Those of nil and of the zero value say that nothing is held.
type Hold struct {
	turn   *turn
	parent context.Context
	before *Hold // in the turn's chain, guarded by the tenure's mutex

	mu       sync.Mutex
	unlocked bool
	cause    error // why it ended; nil while it has not
	ctx      *holdContext
	cancel   context.CancelCauseFunc
}

// none reports whether it is no hold: nil, or the zero value.
func (h *Hold) none() bool { return h == nil || h.turn == nil }

// noHold is the context of none: one that has ended.
var noHold = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(session.Wrap("", session.ErrNotHeld))
	return ctx
}()

// look ends the hold if its lease is over at this instant. It does not wait for the keeper, which may have
// many to end.
func (h *Hold) look() {
	if t := h.turn.tenure; t.item.Left() <= 0 {
		t.Client.Keeper.Expire(&t.item)
		h.end(lossOf(lease.ErrExpired))
	}
}

// Context is documented by the root package, as are the methods that follow.
func (h *Hold) Context() context.Context {
	if h.none() {
		return noHold
	}
	h.mu.Lock()
	ctx := h.ctx
	h.mu.Unlock()
	if ctx != nil {
		return ctx
	}
	// Without the mutex: the parent may be the context of another hold of this tenure. That one may just find
	// out that it is lost, and end this one.
	inner, cancel := context.WithCancelCause(h.parent)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx != nil {
		cancel(nil) // somebody else was first
		return h.ctx
	}
	h.ctx, h.cancel = &holdContext{Context: inner, hold: h}, cancel
	if h.cause != nil {
		cancel(session.Wrap(h.turn.tenure.name, h.cause))
	}
	return h.ctx
}

// end ends the hold's context. The first cause stays.
func (h *Hold) end(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause != nil {
		return
	}
	h.cause = cause
	if h.cancel != nil {
		h.cancel(session.Wrap(h.turn.tenure.name, cause))
	}
}

// Name is that of the primitive, without the client's prefix.
func (h *Hold) Name() string {
	if h.none() {
		return ""
	}
	return h.turn.tenure.name
}

// Token is the fencing token.
func (h *Hold) Token() int64 {
	if h.none() {
		return 0
	}
	return h.turn.token
}

// Sequence is the place in the queue.
func (h *Hold) Sequence() int64 {
	if h.none() {
		return 0
	}
	return h.turn.sequence
}

// Held reports whether the lease can be trusted at this instant.
func (h *Hold) Held() bool { return h.Err() == nil }

// Err is why the hold has ended; nil while it has not.
func (h *Hold) Err() error {
	if h.none() {
		return session.Wrap("", session.ErrNotHeld)
	}
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		return nil
	}
	return session.Wrap(h.turn.tenure.name, h.cause)
}

// Remaining is for how long the lease can be trusted. It is 0 only for a hold that has ended: a renewal may
// just be extending one whose time is up.
func (h *Hold) Remaining() time.Duration {
	for h.Err() == nil {
		if left := h.turn.tenure.item.Left(); left > 0 {
			return left
		}
	}
	return 0
}

// Unlock ends the hold. The last one of a turn hands the lock off locally, or releases it in Redis.
func (h *Hold) Unlock(ctx context.Context) error {
	if h.none() {
		return h.Err()
	}
	t := h.turn.tenure
	h.mu.Lock()
	again := h.unlocked
	h.unlocked = true
	h.mu.Unlock()
	if again {
		return session.Wrap(t.name, session.ErrNotHeld)
	}
	h.look()
	h.end(session.ErrReleased)
	over, last, loss := h.turn.leave(h)
	switch {
	case over && !last && (loss == nil || !t.Client.HeldAtClose.TrustedUntil(t).IsZero()):
		h.turn.released() // others of this process hold on
		return nil
	case last && errors.Is(loss, session.ErrClosed):
		if err := t.unlockLate(ctx, h.turn); err != nil {
			return session.Wrap(t.name, err)
		}
		return nil
	case loss != nil:
		return session.Wrap(t.name, loss)
	case !last || t.handOff(h.turn):
		return nil
	}
	if err := t.unlock(ctx, h.turn); err != nil {
		return session.Wrap(t.name, err)
	}
	return nil
}

// holdContext is the context of a hold. Err looks at the clock: so it is right at the first instruction after
// the process was stopped, before any timer has fired.
type holdContext struct {
	context.Context
	hold *Hold
}

func (c *holdContext) Err() error {
	c.hold.look()
	return c.Context.Err()
}

// Value finds the hold under its queue, for re-entry, and all else where the parent has it.
func (c *holdContext) Value(key any) any {
	if r, ok := key.(*Queue); ok && r == c.hold.turn.tenure.Queue {
		return c.hold
	}
	return c.Context.Value(key)
}
