// Package hold is what a caller has that holds something: a context that ends with the lease, and the ways to ask and to
// end it. It knows no engine: a hold stands on a [Backing].
package hold

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
)

// Hold is the inside of the root package's Hold, and of semaphore.Permits. Its methods are safe for
// concurrent use. The methods of a nil Hold and of the zero value say that nothing is held.
type Hold struct {
	backing Backing
	parent  context.Context
	before  *Hold // the backing's, which guards it

	mu       sync.Mutex
	unlocked bool
	cause    error // why it ended; nil while it has not
	ctx      *holdContext
	cancel   context.CancelCauseFunc
}

// Backing is what a hold stands on: a turn in a tenure, or what another engine holds by. Its methods are safe
// for concurrent use.
type Backing interface {
	// HoldName is the name of what is held, without the client's prefix.
	HoldName() string
	// Token is the fencing token.
	Token() int64
	// Sequence is the place in the queue; 0: none.
	Sequence() int64
	// LeftAt is for how long it can be trusted at a moment; 0 or less when it is over.
	LeftAt(moment time.Time) time.Duration
	// Expire is told that LeftAt is over. It returns the reason.
	Expire() error
	// Release is the Unlock of a hold, whose context has ended now. It is called once for each.
	Release(ctx context.Context, h *Hold, now time.Time) error
	// Lose is [Hold.Lose] of a hold that has not ended.
	Lose(ctx context.Context, h *Hold, reason error) error
	// Record is what others may know of a hold that has not ended. It reports false for one that is no lock's.
	Record() (identity.Held, bool)
	// Wanted is closed when others wait; the same for all holds of it.
	Wanted() <-chan struct{}
	// WhenWanted has f called once when others wait, at once if they do already, and not after it is over. f
	// does not block.
	WhenWanted(f func())
	// IsKey reports whether contexts have the hold under this key, for re-entry.
	IsKey(key any) bool
}

// New returns a hold that stands on a backing. Its context is derived from parent.
func New(parent context.Context, b Backing) *Hold { return &Hold{backing: b, parent: parent} }

// Begin makes the zero value what New returns.
func (h *Hold) Begin(parent context.Context, b Backing) { h.backing, h.parent = b, parent }

// Backing is what it stands on.
func (h *Hold) Backing() Backing { return h.backing }

// Parent is the context from which its own is derived.
func (h *Hold) Parent() context.Context { return h.parent }

// Before is the hold to which its backing has chained it; nil for none.
func (h *Hold) Before() *Hold { return h.before }

// Chain sets what Before returns. The backing has a mutex for both.
func (h *Hold) Chain(before *Hold) { h.before = before }

// None reports whether it is no hold: nil, or the zero value.
func (h *Hold) None() bool { return h == nil || h.backing == nil }

// noHold is the context of none: one that has ended.
var noHold = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fail.Wrap("", fail.ErrNotHeld))
	return ctx
}()

// Look ends the hold if its lease is over at this instant. It does not wait for the keeper, which may have
// many to end.
func (h *Hold) Look() {
	if h.backing.LeftAt(time.Now()) > 0 {
		return
	}
	if why := h.backing.Expire(); h.backing.LeftAt(time.Now()) <= 0 { // else a renewal was just being answered
		h.End(LossOf(why))
	}
}

// Context is documented by the root package, as are the methods that follow.
func (h *Hold) Context() context.Context {
	if h.None() {
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
		cancel(nil) // another call was first
		return h.ctx
	}
	h.ctx, h.cancel = &holdContext{Context: inner, hold: h}, cancel
	if h.cause != nil {
		cancel(fail.Wrap(h.backing.HoldName(), h.cause))
	}
	return h.ctx
}

// End ends the hold's context for this cause. The first cause stays.
func (h *Hold) End(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(cause)
}

// end is End with the mutex held.
func (h *Hold) end(cause error) {
	if h.cause != nil {
		return
	}
	h.cause = cause
	if h.cancel != nil {
		h.cancel(fail.Wrap(h.backing.HoldName(), cause))
	}
}

// IsKey reports whether its context has it under this key.
func (h *Hold) IsKey(key any) bool { return !h.None() && h.backing.IsKey(key) }

// Name is the name of the primitive, without the client's prefix.
func (h *Hold) Name() string {
	if h.None() {
		return ""
	}
	return h.backing.HoldName()
}

// Token is the fencing token.
func (h *Hold) Token() int64 {
	if h.None() {
		return 0
	}
	return h.backing.Token()
}

// Sequence is the place in the queue.
func (h *Hold) Sequence() int64 {
	if h.None() {
		return 0
	}
	return h.backing.Sequence()
}

// Held reports whether the lease can be trusted at this instant.
func (h *Hold) Held() bool { return h.Err() == nil }

// Err is why the hold has ended; nil while it has not.
func (h *Hold) Err() error {
	if h.None() {
		return fail.Wrap("", fail.ErrNotHeld)
	}
	h.Look()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		return nil
	}
	return fail.Wrap(h.backing.HoldName(), h.cause)
}

// Remaining is for how long the lease can be trusted. It is 0 only for a hold that has ended: a renewal may
// just be extending one whose time is up.
func (h *Hold) Remaining() time.Duration {
	for h.Err() == nil {
		if left := h.backing.LeftAt(time.Now()); left > 0 {
			return left
		}
	}
	return 0
}

// Wanted is closed when others wait; nil of no hold.
func (h *Hold) Wanted() <-chan struct{} {
	if h.None() {
		return nil
	}
	return h.backing.Wanted()
}

// WhenWanted has f called once when others wait, at once if they do already, and not after the end of the
// hold. f must not block, nor call the hold.
func (h *Hold) WhenWanted(f func()) {
	if !h.None() {
		h.backing.WhenWanted(f)
	}
}

// Unlock ends the hold. The last one of a turn hands the lock off locally, or releases it in Redis. One reading of the
// clock serves the whole Unlock.
func (h *Hold) Unlock(ctx context.Context) error {
	if h.None() {
		return h.Err()
	}
	now := time.Now()
	if !h.Conclude(now) {
		return fail.Wrap(h.backing.HoldName(), fail.ErrNotHeld)
	}
	if err := h.backing.Release(ctx, h, now); err != nil {
		return fail.Wrap(h.backing.HoldName(), err)
	}
	return nil
}

// Conclude ends the hold's context for its Unlock. It returns false when another Unlock has.
func (h *Hold) Conclude(now time.Time) bool {
	if h.backing.LeftAt(now) <= 0 {
		h.Look()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unlocked {
		return false
	}
	h.unlocked = true
	h.end(fail.ErrReleased)
	return true
}

// IsUnlocked reports whether its Unlock has begun.
func (h *Hold) IsUnlocked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unlocked
}

// Loss is why the hold was lost, as far as the hold knows; nil while it was not, and of one that was unlocked before.
func (h *Hold) Loss() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.cause, fail.ErrReleased) {
		return nil
	}
	return h.cause
}

// holdContext is the context of a hold. Err looks at the clock: so it is right at the first instruction after
// the process was stopped, before any timer has fired.
type holdContext struct {
	context.Context
	hold *Hold
}

func (c *holdContext) Err() error {
	c.hold.Look()
	return c.Context.Err()
}

// Value finds the hold for re-entry, and all else where the parent has it.
func (c *holdContext) Value(key any) any {
	if c.hold.backing.IsKey(key) {
		return c.hold
	}
	Collect(key, c.hold)
	return c.Context.Value(key)
}
