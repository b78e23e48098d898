// Package hold has the hold that a caller gets: a context that ends with the lease, and methods that ask about the
// hold and end it. The package knows no engine: a hold stands on a [Backing].
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
	before  *Hold // see Chain; the backing guards it

	mu       sync.Mutex
	unlocked bool
	cause    error // why the hold has ended; nil: it has not
	ctx      *holdContext
	cancel   context.CancelCauseFunc
}

// Backing is what a hold stands on: a turn in a tenure, or the counterpart of a turn in another engine. Its methods
// are safe for concurrent use.
type Backing interface {
	// HoldName returns the name of the primitive, without the client's prefix.
	HoldName() string
	// Token is the fencing token.
	Token() int64
	// Sequence is the place in the queue; 0: none.
	Sequence() int64
	// LeftAt returns for how long the hold can be trusted at moment; 0 or less if the hold is over.
	LeftAt(moment time.Time) time.Duration
	// Expire ends the hold because its trust is over by LeftAt. It returns the reason.
	Expire() error
	// Release does the Unlock of h, whose context has ended at now. Unlock calls it once for each hold.
	Release(ctx context.Context, h *Hold, now time.Time) error
	// Lose is [Hold.Lose] for a hold that has not ended.
	Lose(ctx context.Context, h *Hold, reason error) error
	// Record returns what others may know of a hold that has not ended. It reports false if the hold is not a lock's.
	Record() (identity.Held, bool)
	// Wanted returns a channel that is closed when others wait. All holds of the backing share the channel.
	Wanted() <-chan struct{}
	// WhenWanted calls f once when others wait, at once if they wait already. It does not call f after the hold is
	// over. f must not block.
	WhenWanted(f func())
	// IsKey reports whether contexts keep the hold under this key, for re-entry.
	IsKey(key any) bool
}

// New returns a hold that stands on a backing. Its context is derived from parent.
func New(parent context.Context, b Backing) *Hold { return &Hold{backing: b, parent: parent} }

// Begin makes the zero value what New returns.
func (h *Hold) Begin(parent context.Context, b Backing) { h.backing, h.parent = b, parent }

// Backing returns what the hold stands on.
func (h *Hold) Backing() Backing { return h.backing }

// Parent returns the context from which the hold's own context is derived.
func (h *Hold) Parent() context.Context { return h.parent }

// Before returns the hold that Chain was given, or nil.
func (h *Hold) Before() *Hold { return h.before }

// Chain sets what Before returns. A mutex of the backing guards both.
func (h *Hold) Chain(before *Hold) { h.before = before }

// None reports whether h holds nothing: h is nil, or the zero value.
func (h *Hold) None() bool { return h == nil || h.backing == nil }

// noHold is the context of a Hold that holds nothing. It has ended.
var noHold = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fail.Wrap("", fail.ErrNotHeld))
	return ctx
}()

// Look ends the hold if its lease is over at this instant. It does not wait for the keeper, which may have many holds
// to end.
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
	// Without the mutex: h.parent may be the context of another hold of this tenure. The other hold may just find out
	// that it is lost, and end this hold, which needs the mutex.
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

// end is End for a caller that holds the mutex.
func (h *Hold) end(cause error) {
	if h.cause != nil {
		return
	}
	h.cause = cause
	if h.cancel != nil {
		h.cancel(fail.Wrap(h.backing.HoldName(), cause))
	}
}

// IsKey reports whether the context of the hold keeps the hold under this key.
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

// Remaining returns for how long the lease can be trusted. It returns 0 only for a hold that has ended: if the time
// is up, a renewal may just be extending the lease, and Remaining looks again.
func (h *Hold) Remaining() time.Duration {
	for h.Err() == nil {
		if left := h.backing.LeftAt(time.Now()); left > 0 {
			return left
		}
	}
	return 0
}

// Wanted returns a channel that is closed when others wait, or nil if h holds nothing.
func (h *Hold) Wanted() <-chan struct{} {
	if h.None() {
		return nil
	}
	return h.backing.Wanted()
}

// WhenWanted calls f once when others wait, at once if they wait already. It does not call f after the end of the
// hold. f must not block, nor call the hold.
func (h *Hold) WhenWanted(f func()) {
	if !h.None() {
		h.backing.WhenWanted(f)
	}
}

// Unlock ends the hold. The Unlock of a turn's last hold hands the lock off locally, or releases the lock in Redis.
// One reading of the clock serves the whole Unlock.
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

// Conclude ends the hold's context for its Unlock. It returns false if another Unlock has done so.
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

// IsUnlocked reports whether an Unlock of the hold has begun.
func (h *Hold) IsUnlocked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unlocked
}

// Loss returns why the hold was lost, as far as the hold knows. It returns nil if the hold was not lost, or was
// unlocked before the loss.
func (h *Hold) Loss() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.cause, fail.ErrReleased) {
		return nil
	}
	return h.cause
}

// holdContext is the context of a hold. Err looks at the clock: so after the process was stopped, Err is right at the
// first instruction, before any timer has fired.
type holdContext struct {
	context.Context
	hold *Hold
}

func (c *holdContext) Err() error {
	c.hold.Look()
	return c.Context.Err()
}

// Value finds the hold for re-entry. All other keys it looks up in the parent.
func (c *holdContext) Value(key any) any {
	if c.hold.backing.IsKey(key) {
		return c.hold
	}
	Collect(key, c.hold)
	return c.Context.Value(key)
}
