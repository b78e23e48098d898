package grant

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Hold is the inside of the root package's Hold, and of semaphore.Permits. Its methods are safe for
// concurrent use. The methods of a nil Hold and of the zero value say that nothing is held.
type Hold struct {
	backing Backing
	parent  context.Context
	before  *Hold // in the turn's chain, guarded by the mutex of its queue

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
	// Left is for how long it can be trusted; 0 or less when it is over.
	Left() time.Duration
	// Expire is told that somebody saw that Left is over. It returns the reason.
	Expire() error
	// Release is the Unlock of a hold, whose context has ended. It is called once for each.
	Release(ctx context.Context, h *Hold) error
	// Wanted is closed when others wait; the same for all holds of it.
	Wanted() <-chan struct{}
	// WhenWanted has f called once when others wait, at once if they do already, and not after it is over. f
	// does not block.
	WhenWanted(f func())
	// IsKey reports whether contexts have the hold under this key, for re-entry.
	IsKey(key any) bool
}

// NewHold returns a hold that stands on a backing. Its context is derived from parent.
func NewHold(parent context.Context, b Backing) *Hold { return &Hold{backing: b, parent: parent} }

// Backing is what it stands on.
func (h *Hold) Backing() Backing { return h.backing }

// none reports whether it is no hold: nil, or the zero value.
func (h *Hold) none() bool { return h == nil || h.backing == nil }

// turn returns the turn of a tenure's hold; nil for any other hold.
func (h *Hold) turn() *turn {
	u, _ := h.backing.(*turn)
	return u
}

// Alone returns what a hold is of that excludes all others of its name; nil of any other: one that reads, or
// may do so by now, one of permits, none, and what another engine holds by. Its token is its own: a store may
// refuse all smaller ones.
func (h *Hold) Alone() *session.Target {
	if h.none() {
		return nil
	}
	u := h.turn()
	if u == nil || !u.tenure.queue.kind.Exclusive && !u.tenure.queue.kind.isSharable() {
		return nil
	}
	t := u.tenure
	if !t.excludes() {
		return nil
	}
	return &t.queue.At
}

// noHold is the context of none: one that has ended.
var noHold = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fail.Wrap("", fail.ErrNotHeld))
	return ctx
}()

// look ends the hold if its lease is over at this instant. It does not wait for the keeper, which may have
// many to end.
func (h *Hold) look() {
	if h.backing.Left() > 0 {
		return
	}
	if why := h.backing.Expire(); h.backing.Left() <= 0 { // else a renewal was just being answered
		h.End(why)
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
		cancel(fail.Wrap(h.backing.HoldName(), h.cause))
	}
	return h.ctx
}

// End ends the hold because it was lost, for this reason, or because the client was closed.
func (h *Hold) End(reason error) { h.end(LossOf(reason)) }

// end ends the hold's context. The first cause stays.
func (h *Hold) end(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endNow(cause)
}

// endNow is end with the mutex held.
func (h *Hold) endNow(cause error) {
	if h.cause != nil {
		return
	}
	h.cause = cause
	if h.cancel != nil {
		h.cancel(fail.Wrap(h.backing.HoldName(), cause))
	}
}

// IsKey reports whether its context has it under this key.
func (h *Hold) IsKey(key any) bool { return !h.none() && h.backing.IsKey(key) }

// Name is the name of the primitive, without the client's prefix.
func (h *Hold) Name() string {
	if h.none() {
		return ""
	}
	return h.backing.HoldName()
}

// Token is the fencing token.
func (h *Hold) Token() int64 {
	if h.none() {
		return 0
	}
	return h.backing.Token()
}

// Sequence is the place in the queue.
func (h *Hold) Sequence() int64 {
	if h.none() {
		return 0
	}
	return h.backing.Sequence()
}

// Held reports whether the lease can be trusted at this instant.
func (h *Hold) Held() bool { return h.Err() == nil }

// Err is why the hold has ended; nil while it has not.
func (h *Hold) Err() error {
	if h.none() {
		return fail.Wrap("", fail.ErrNotHeld)
	}
	h.look()
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
		if left := h.backing.Left(); left > 0 {
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
	now := time.Now()
	if !h.conclude(now) {
		return fail.Wrap(h.backing.HoldName(), fail.ErrNotHeld)
	}
	if err := h.release(ctx, now); err != nil {
		return fail.Wrap(h.backing.HoldName(), err)
	}
	return nil
}

// release is the backing's. One reading of the clock serves the whole Unlock.
func (h *Hold) release(ctx context.Context, now time.Time) error {
	if u := h.turn(); u != nil {
		return u.release(ctx, h, now)
	}
	return h.backing.Release(ctx, h)
}

// conclude ends the hold's context for its Unlock. It returns false when another Unlock has.
func (h *Hold) conclude(now time.Time) bool {
	if u := h.turn(); u == nil || u.tenure.item.LeftAt(now) <= 0 {
		h.look()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unlocked {
		return false
	}
	h.unlocked = true
	h.endNow(fail.ErrReleased)
	return true
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

// Value finds the hold for re-entry, and all else where the parent has it.
func (c *holdContext) Value(key any) any {
	if c.hold.backing.IsKey(key) {
		return c.hold
	}
	Collect(key, c.hold)
	return c.Context.Value(key)
}
