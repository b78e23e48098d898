package grant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// unlock releases the tenure in Redis. It waits for the answer until ctx ends; if ctx has ended already, for the
// command timeout. After that the release goes on until the trust ends: a lock that no goroutine needs must not stay
// taken. done is the turn that ends with the release.
func (t *tenure) unlock(ctx context.Context, done *turn) error {
	if over, err := t.stopRenewals(ctx, done); over {
		return err
	}
	return t.see(ctx, &releasing{turn: done})
}

// stopRenewals stops the renewals of a tenure before its release. over: the caller must not send a release,
// because the tenure was lost, or the client was closed. Then stopRenewals has given back what Redis may
// still have, and err is the outcome.
func (t *tenure) stopRenewals(ctx context.Context, done *turn) (over bool, err error) {
	switch {
	case t.queue.At.Client.Keeper.Remove(&t.item):
		return false, nil
	case !t.queue.At.Client.HeldAtClose.TrustedUntil(t).IsZero(): // the client was closed just now
		return true, t.unlockLate(ctx, done)
	default:
		return true, t.late(done)
	}
}

// see sends a release and waits for the answer as unlock does.
func (t *tenure) see(ctx context.Context, r *releasing) error {
	return t.queue.At.FinishInBackground(ctx, func(ctx context.Context) (bool, error) { return t.release(ctx, r) })
}

// late ends a tenure whose lease ended before its release. done is the turn that ends with the tenure.
func (t *tenure) late(done *turn) error {
	t.queue.mu.Lock()
	loss := t.loss
	t.queue.mu.Unlock()
	if loss == nil {
		loss = hold.LossOf(t.item.Expiry())
	}
	t.releaseLost(loss, done)
	t.finish()
	return loss
}

// releaseLost gives back a tenure that was lost by the wall clock alone: the machine was suspended, or its clock was
// set. Redis may keep the lease as long as the lease lasts by the monotonic clock. The last hold of this process has
// ended, and the owner id is this tenure's alone. So the release takes nothing from others. No caller waits for the
// release. done is the turn that ends with the release; nil: no turn ends.
func (t *tenure) releaseLost(loss error, done *turn) {
	left := t.item.LeftMonotonic()
	if left <= 0 || !errors.Is(loss, lease.ErrExpired) && !errors.Is(loss, lease.ErrEnded) {
		return
	}
	e, weight, at := t.endingOf(&releasing{turn: done, unheard: done == nil}), t.Weight(), t.queue.At
	at.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), left)
		defer cancel()
		var unanswered bool
		_, _ = at.RetryUntilAnswered(ctx, at.Up, &unanswered, func(ctx context.Context) error { // else the lease runs out
			_, err := t.queue.Commands.Release(ctx, e, weight)
			return err
		})
	})
}

// releasing is one release, over all its repetitions.
type releasing struct {
	turn       *turn         // the turn that ends; nil: the tenure had no hold
	keep       int           // permits that stay held; more than 0: the tenure goes on
	to         string        // the owner id that gets what the tenure has; empty: none
	lasts      time.Duration // for how long that id holds, unless a process attaches it
	unanswered bool          // a release was sent and not answered
	unheard    bool          // no caller has had the hold, so no MinHold applies
}

// release sends the release until Redis answers, ctx ends, or the trust has ended. If ctx ends first, over is false:
// the caller must go on with the release.
func (t *tenure) release(ctx context.Context, r *releasing) (over bool, err error) {
	err = t.send(ctx, r)
	if ctx.Err() != nil && errors.Is(err, fail.ErrInterrupted) {
		return false, err
	}
	if r.keep == 0 {
		t.finish()
		if err == nil && r.turn != nil {
			r.turn.released()
		}
	}
	return true, err
}

func (t *tenure) send(ctx context.Context, r *releasing) error {
	if !t.queue.waiters.Answered(&t.waiter) {
		if err := t.patiently(ctx, func(ctx context.Context) error { return t.queue.waiters.AwaitAnswers(ctx, &t.waiter) }); err != nil {
			return t.undone(ctx, r, fail.ErrUnavailable)
		}
	}
	e := t.endingOf(r)
	owned := false
	answered, err := t.queue.At.RetryUntilAnswered(ctx, func(ctx context.Context) error { return t.patiently(ctx, t.queue.At.Up) }, &r.unanswered, func(ctx context.Context) (err error) {
		if r.to != "" {
			owned, err = t.move(ctx, r)
			return err
		}
		e.Rest = t.rest(r)
		owned, err = t.queue.Commands.Release(ctx, e, t.Weight())
		return err
	})
	switch {
	case !answered && ctx.Err() != nil:
		return fail.ErrInterrupted
	case !answered:
		return t.undone(ctx, r, fail.WithSentinel(err))
	case err != nil && lua.Classify(err) == lua.WrongType:
		return fmt.Errorf("%w: %w: %w", fail.ErrLost, hold.ErrNotOurs, fail.WithSentinel(err))
	case err != nil:
		return fail.WithSentinel(err)
	case !owned && (!r.unanswered || r.to != ""): // rule 9: else an earlier send may have released it
		return fmt.Errorf("%w: %w", fail.ErrLost, hold.ErrNotOurs)
	}
	return nil
}

// endingOf returns what a release asks for now.
func (t *tenure) endingOf(r *releasing) lua.Ending {
	announce := t.partOf != nil && t.partOf.announces.Load()
	return lua.Ending{Owner: t.waiter.Owner, Entry: t.strayEntry(), Rest: t.rest(r), Announce: announce}
}

// patiently calls f with a context that ends with ctx or with the trust.
func (t *tenure) patiently(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.item.Left())
	defer cancel()
	return f(ctx)
}

// undone returns the error of a release that Redis did not answer while the answer mattered.
func (t *tenure) undone(ctx context.Context, r *releasing, err error) error {
	switch {
	case t.queue.At.Client.Stopped.Err() != nil:
		return fail.ErrClosed
	case ctx.Err() != nil:
		return fail.ErrInterrupted
	case r.unanswered:
		return fmt.Errorf("%w: the lease ran out: %w", fail.ErrUnknownOutcome, err)
	default:
		return fmt.Errorf("%w: the lease ran out before a release was sent: %w", fail.ErrLost, err)
	}
}

// rest returns what stays held after a release: for how many ms the lock stays taken, or how many permits stay.
func (t *tenure) rest(r *releasing) int64 {
	if t.terms.MinHold == 0 || r.unheard {
		return int64(r.keep)
	}
	return max(session.Milliseconds(time.Until(r.turn.moment.Add(t.terms.MinHold))), 0)
}

// strayEntry returns the tenure's queue entry if Redis may have run its acquire a second time, and queued it again.
// Else it returns an empty string.
func (t *tenure) strayEntry() string {
	if !t.queue.waiters.Stray(&t.waiter) {
		return ""
	}
	return t.queue.claim(&t.waiter).Entry()
}

// unlockLate releases a tenure that was held when the client was closed. The client renews the tenure no more, but
// until the trust ends no other owner has the lock either. unlockLate sends one release, and does not wait long:
// Close waits for nothing.
func (t *tenure) unlockLate(ctx context.Context, done *turn) error {
	err := t.sendLate(ctx, done)
	if err == nil {
		done.released()
	}
	return err
}

// sendLate is unlockLate without the Released hook.
func (t *tenure) sendLate(ctx context.Context, done *turn) error {
	c := t.queue.At.Client
	until := c.HeldAtClose.TrustedUntil(t)
	defer c.HeldAtClose.Remove(t)
	switch {
	case !time.Now().Before(until):
		return hold.ErrClosedAndLost
	case !t.queue.waiters.Answered(&t.waiter):
		return fail.ErrClosed
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, min(c.Options.CommandTimeout, time.Until(until)))
	defer cancel()
	owned, err := t.queue.Commands.Release(session.WithoutDeadline(ctx), t.endingOf(&releasing{turn: done}), 0)
	switch {
	case err != nil:
		return fmt.Errorf("%w: it was not released, and its lease runs out: %w", fail.ErrClosed, fail.WithSentinel(err))
	case !owned:
		return fmt.Errorf("%w: %w", fail.ErrLost, hold.ErrNotOurs)
	}
	return nil
}
