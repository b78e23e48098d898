package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// tenure is one owner id: from the first acquire that is sent with it until nothing of it is left in Redis. The holds of
// those who re-enter share it.
type tenure struct {
	*resource
	name     string
	waiter   wait.Waiter
	item     lease.Item
	token    int64
	moment   time.Time // since when it is held
	earliest time.Time // of the release in Redis; zero: at once
	first    Hold

	mu     sync.Mutex
	last   *Hold // of those that are not unlocked; they are chained
	loss   error // why it was lost; nil while it is not
	ending bool  // it was released, or lost
	gone   bool  // forget was called
	forced bool  // taken away by ForceUnlock
}

// newTenure registers a fresh id, so that whatever Redis says of it finds it. It returns nil once the client is closing.
func (c *Client) newTenure(l *Lock) *tenure {
	n := c.sequence.Add(1)
	t := &tenure{resource: l.resource, name: l.name}
	t.waiter = wait.Waiter{Number: n, Owner: lua.Owner(c.id, n), Lease: l.terms.lease}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing.Err() != nil {
		return nil
	}
	c.tenures[n] = t
	c.waiters.add(1)
	return t
}

// hold turns a granted tenure into its first hold. It returns nil when the lease was over before that, or the client
// closed: then the tenure has been given back.
func (t *tenure) hold(parent context.Context, terms terms, began time.Time) *Hold {
	c, grant := t.client, t.waiter.Grant
	t.token, t.moment = grant.Token, grant.Moment
	t.item.Owner, t.item.Lease = t, terms.lease
	if terms.maxHold > 0 {
		t.item.End = grant.Moment.Add(terms.maxHold)
	}
	if terms.minHold > 0 {
		t.earliest = grant.Moment.Add(terms.minHold)
	}
	granted := terms.lease
	if grant.Short {
		granted = min(granted, wait.ShortLease)
	}
	t.first = Hold{tenure: t, parent: parent}
	t.last = &t.first
	c.mu.Lock()
	c.waiters.add(-1)
	c.holds.add(1)
	c.mu.Unlock()
	c.keeper.Keep(&t.item, grant.Moment, granted)
	if t.item.Left() <= 0 || c.closing.Err() != nil {
		c.keeper.Remove(&t.item)
		t.forget(true)
		t.end()
		return nil
	}
	c.options.Observer.acquired(t.name, t.token, time.Since(began))
	t.mu.Lock()
	forced := t.forced
	t.mu.Unlock()
	if forced { // while it became a hold
		c.keeper.Lose(&t.item, errForced)
	}
	return &t.first
}

// force is told that somebody else took the lock away.
func (t *tenure) force() {
	t.mu.Lock()
	t.forced = true
	t.mu.Unlock()
	t.client.keeper.Lose(&t.item, errForced)
}

// reenter returns a further hold, or nil when the tenure has ended meanwhile.
func (t *tenure) reenter(parent context.Context) *Hold {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || t.loss != nil { // being released, or lost
		return nil
	}
	t.last = &Hold{tenure: t, parent: parent, before: t.last}
	return t.last
}

// Lost is lease.Owner: it ends the contexts of all holds. Nothing is sent, because their code may still run.
func (t *tenure) Lost(reason error) {
	t.mu.Lock()
	t.loss = lossOf(reason)
	for h := t.last; h != nil; h = h.before {
		h.end(t.loss)
	}
	t.mu.Unlock()
	if t.end() {
		t.client.Go(func() { // others may have been lost at the same time, and must not wait for hooks
			t.client.options.Logger.Warn("latchkey: lock lost", "name", t.name, "token", t.token, "reason", reason)
			t.client.options.Observer.lost(t.name, t.token, reason)
		})
	}
	t.forget(false) // Unlock may never be called
}

func lossOf(reason error) error {
	if errors.Is(reason, ErrClosed) {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrLost, reason)
}

// end takes the tenure out of the client's tally of holds, and reports whether this was the first call.
func (t *tenure) end() bool {
	t.mu.Lock()
	first := !t.ending
	t.ending = true
	t.mu.Unlock()
	if first {
		t.client.mu.Lock()
		t.client.holds.add(-1)
		t.client.mu.Unlock()
	}
	return first
}

// forget is called when nothing more will be sent for the hold, once or more. With cancel, or while an acquire of it is
// unanswered or may still arrive, what it left in Redis is removed first.
func (t *tenure) forget(cancel bool) {
	t.mu.Lock()
	gone := t.gone
	t.gone = true
	t.mu.Unlock()
	if gone {
		return
	}
	c := t.client
	c.mu.Lock()
	c.waiters.add(1) // until Forget
	c.mu.Unlock()
	if !t.room.Retire(&t.waiter, cancel) {
		t.Forget(&t.waiter)
	}
}

// look ends the hold if its time is over at this instant. It does not wait for its turn among holds that ended together.
func (h *Hold) look() {
	if h.tenure.item.Left() <= 0 {
		h.tenure.client.keeper.Expire(&h.tenure.item)
		h.end(lossOf(lease.ErrExpired))
	}
}

// Hold is the inside of the root package's Hold.
type Hold struct {
	tenure *tenure
	parent context.Context
	before *Hold // in the tenure's chain, guarded by its mutex

	mu       sync.Mutex
	unlocked bool
	cause    error // why it ended; nil while it has not
	ctx      *holdContext
	cancel   context.CancelCauseFunc
}

// Context is documented by the root package, as are the methods that follow.
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	ctx := h.ctx
	h.mu.Unlock()
	if ctx != nil {
		return ctx
	}
	// Without the mutex: the parent may be the context of another hold of this tenure, which may just find out that it is
	// lost, and end this one.
	inner, cancel := context.WithCancelCause(h.parent)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx != nil {
		cancel(nil) // somebody else was first
		return h.ctx
	}
	h.ctx, h.cancel = &holdContext{Context: inner, hold: h}, cancel
	if h.cause != nil {
		cancel(named(h.tenure.name, h.cause))
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
		h.cancel(named(h.tenure.name, cause))
	}
}

// Name is the lock's.
func (h *Hold) Name() string { return h.tenure.name }

// Token is the fencing token.
func (h *Hold) Token() int64 { return h.tenure.token }

// Sequence is the place in the queue.
func (h *Hold) Sequence() int64 { return h.tenure.waiter.Sequence() }

// Held looks at the clock.
func (h *Hold) Held() bool { return h.Err() == nil }

// Err looks at the clock.
func (h *Hold) Err() error {
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause == nil {
		return nil
	}
	return named(h.tenure.name, h.cause)
}

// Trusted is the time left. It is 0 only for a hold that has ended: a renewal may just be extending one whose time is up.
func (h *Hold) Trusted() time.Duration {
	for h.Err() == nil {
		if left := h.tenure.item.Left(); left > 0 {
			return left
		}
	}
	return 0
}

// Unlock ends the hold; the last one of a tenure releases it in Redis.
func (h *Hold) Unlock(ctx context.Context) error {
	t := h.tenure
	h.mu.Lock()
	again := h.unlocked
	h.unlocked = true
	h.mu.Unlock()
	if again {
		return named(t.name, ErrNotHeld)
	}
	h.look()
	h.end(ErrReleased)
	last, loss := t.leave(h)
	if !last {
		if loss != nil {
			return named(t.name, loss)
		}
		return nil
	}
	if trusted := t.client.keeper.Remove(&t.item); !trusted && loss == nil {
		loss = lossOf(lease.ErrExpired)
	}
	if loss != nil {
		t.end()
		t.forget(false)
		return named(t.name, loss)
	}
	if err := t.unlock(ctx); err != nil {
		return named(t.name, err)
	}
	return nil
}

// leave removes h, and reports whether it was the last hold and whether the tenure was lost.
func (t *tenure) leave(h *Hold) (last bool, loss error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := &t.last; *p != nil; p = &(*p).before {
		if *p == h {
			*p = h.before
			break
		}
	}
	return t.last == nil, t.loss
}

// holdContext is the context of a hold. Err looks at the clock, so that it is right at the first instruction after the
// process was stopped, before any timer has fired.
type holdContext struct {
	context.Context
	hold *Hold
}

func (c *holdContext) Err() error {
	c.hold.look()
	return c.Context.Err()
}

// Value finds the hold under its resource, for reentry, and all else where the parent has it.
func (c *holdContext) Value(key any) any {
	if r, ok := key.(*resource); ok && r == c.hold.tenure.resource {
		return c.hold
	}
	return c.Context.Value(key)
}
