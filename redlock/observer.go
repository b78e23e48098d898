package redlock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/session"
)

// The lock calls the hooks of the first client: once for the lock, and not for its parts.

func (q *quorum) event(ctx context.Context) session.Event {
	e := q.engine.servers[0].Queue.At.NewEvent(ctx, q.engine.name)
	e.Token = q.token
	return e
}

// logFields returns what the log says of a slow hold.
func (q *quorum) logFields(context.Context) []any { return []any{"token", q.token} }

// whoHolds returns what the log says of a slow wait: who has a majority, and how many waiters queue at the
// coordinator.
func (w *engine) whoHolds(ctx context.Context) []any {
	state, err := w.Inspect(ctx)
	if err != nil {
		return []any{"error", err}
	}
	return append([]any{"queued", state.Waiting}, session.Holder(state.Holder.Party)...)
}

// blame adds to the error of a refused attempt who holds the lock on a majority: as grant's blame.
func (w *engine) blame(err error) error {
	if grant.Blames(w.Client(), err) {
		ctx, cancel := context.WithTimeout(w.Client().Stopped, grant.BlameLimit)
		defer cancel()
		if state, asked := w.Inspect(ctx); asked == nil {
			return fail.HeldBy(w.name, err, state.Holder)
		}
	}
	return err
}

// acquired calls the hook for a hold that begins. If the hook panics, acquired releases the hold, because the caller
// does not get it.
func (q *quorum) acquired(parent context.Context, began time.Time, contended bool) {
	hook := q.engine.Client().Options.Observer.Acquired
	if hook == nil {
		return
	}
	e := q.event(parent)
	e.Waited, e.Contended = time.Since(began), contended
	session.HookOrUndo(func() { hook(e) }, func() { go func() { _ = q.first.Unlock(context.Background()) }() })
}

// released calls the hook of a hold that has ended well.
func (q *quorum) released() {
	if hook := q.engine.Client().Options.Observer.Released; hook != nil {
		e := q.event(q.parent)
		e.Held = time.Since(q.since)
		hook(e)
	}
}

// lost logs that the hold was lost, and calls the hook.
func (q *quorum) lost(reason error) {
	c := q.engine.Client()
	c.Options.Logger.Warn("latchkey: lost", "name", q.engine.name, "token", q.token, "reason", reason)
	if hook := c.Options.Observer.Lost; hook != nil {
		e := q.event(q.parent)
		e.Held, e.Err = time.Since(q.since), reason
		c.Notifier.Notify(func() { hook(e) })
	}
}
