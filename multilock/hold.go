package multilock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
)

// Hold is several locks that are held together. Its methods are safe for concurrent use. A nil Hold and the zero value
// are not held.
type Hold struct {
	parent context.Context
	names  []string
	holds  []*grant.Hold // in the order of the names

	mu     sync.Mutex
	ctx    *holdContext
	cancel context.CancelCauseFunc
	wanted chan struct{} // nil until it is asked for
}

func (h *Hold) none() bool { return h == nil || len(h.holds) == 0 }

// noHold is a hold of nothing.
var noHold = (*grant.Hold)(nil)

// Context is derived from the context that Lock was given, and ends with the first of the locks that is lost, or with
// Unlock, as [latchkey.Hold.Context] does. A context derived from it re-enters each of the locks.
func (h *Hold) Context() context.Context {
	if h.none() {
		return noHold.Context()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		inner, cancel := context.WithCancelCause(h.parent)
		h.ctx, h.cancel = &holdContext{inner, h}, cancel
		for _, one := range h.holds {
			ctx := one.Context()
			context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
		}
		_ = h.ctx.Err() // if one has ended, so has this, at once
	}
	return h.ctx
}

// Wanted returns a channel that closes when another goroutine or process wants one of the locks: see
// [latchkey.Hold.Wanted].
func (h *Hold) Wanted() <-chan struct{} {
	if h.none() {
		return nil
	}
	h.mu.Lock()
	wanted, first := h.wanted, h.wanted == nil
	if first {
		wanted = make(chan struct{})
		h.wanted = wanted
	}
	h.mu.Unlock()
	if first {
		tell := sync.OnceFunc(func() { close(wanted) })
		for _, one := range h.holds {
			one.WhenWanted(tell)
		}
	}
	return wanted
}

// Names returns the names of the locks, in their order.
func (h *Hold) Names() []string {
	if h.none() {
		return nil
	}
	return append([]string(nil), h.names...)
}

// Hold returns the hold of one of the locks, as for package fence; nil for another name. Do not unlock it.
func (h *Hold) Hold(name string) *latchkey.Hold {
	if !h.none() {
		if i := slices.Index(h.names, name); i >= 0 {
			return (*latchkey.Hold)(h.holds[i])
		}
	}
	return nil
}

// Tokens returns the fencing token of each lock, by its name.
func (h *Hold) Tokens() map[string]int64 {
	tokens := map[string]int64{}
	if !h.none() {
		for i, one := range h.holds {
			tokens[h.names[i]] = one.Token()
		}
	}
	return tokens
}

// Held reports whether all are held at this instant, by the clock.
func (h *Hold) Held() bool { return h.Err() == nil }

// Err returns nil while all are held; otherwise why one of them is not: [latchkey.ErrReleased], [latchkey.ErrLost] or
// [latchkey.ErrClosed].
func (h *Hold) Err() error {
	if h.none() {
		return noHold.Err()
	}
	for _, one := range h.holds {
		if err := one.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Remaining returns how long all leases can be trusted without another renewal; 0 when one is over.
func (h *Hold) Remaining() time.Duration {
	if h.none() {
		return 0
	}
	least := h.holds[0].Remaining()
	for _, one := range h.holds[1:] {
		least = min(least, one.Remaining())
	}
	return least
}

// Unlock ends the hold and releases all locks, side by side. It joins their errors, which are as of
// [latchkey.Hold.Unlock].
func (h *Hold) Unlock(ctx context.Context) error {
	if h.none() {
		return noHold.Unlock(ctx)
	}
	h.end()
	return fail.Join(grant.UnlockTogether(ctx, h.holds)...)
}

// end ends the context, as that of each lock is ended by its Unlock.
func (h *Hold) end() {
	cause := h.Err()
	if cause == nil {
		cause = fail.Wrap(h.names[0], fail.ErrReleased)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx != nil {
		h.cancel(cause)
	}
}

// holdContext is the context of a hold. Err looks at the clock.
type holdContext struct {
	context.Context
	hold *Hold
}

// Err is of [context.Context].
func (c *holdContext) Err() error {
	if c.Context.Err() == nil {
		if err := c.hold.Err(); err != nil {
			c.hold.cancel(err)
		}
	}
	return c.Context.Err()
}

// Value finds the hold of each lock for re-entry, and all else where the parent has it.
func (c *holdContext) Value(key any) any {
	for _, one := range c.hold.holds {
		if one.IsKey(key) {
			return one
		}
	}
	hold.Collect(key, c.hold.holds...)
	return c.Context.Value(key)
}
