package grant

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
)

// unlockLate releases what was held when the client was closed. Nobody renews it any more, but until its
// trust ends nobody else has it either. It is sent once, and not for long: whoever is closing waits for
// nothing.
func (t *tenure) unlockLate(ctx context.Context, done *turn) error {
	err := t.sendLate(ctx, done)
	if err == nil {
		done.released()
	}
	return err
}

// sendLate is unlockLate of a turn that nobody hears of.
func (t *tenure) sendLate(ctx context.Context, done *turn) error {
	c := t.queue.At.Client
	until := c.HeldAtClose.TrustedUntil(t)
	defer c.HeldAtClose.Remove(t)
	if !time.Now().Before(until) || !t.queue.waiters.Answered(&t.waiter) {
		return session.ErrClosed
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, min(c.Options.ReleaseTimeout, time.Until(until)))
	defer cancel()
	owned, err := t.queue.Commands.Release(session.WithoutDeadline(ctx), t.endingOf(&release{turn: done}), 0, true)
	switch {
	case err != nil:
		return fmt.Errorf("%w: it was not released, and its lease runs out: %w", session.ErrClosed, session.WithSentinel(err))
	case !owned:
		return fmt.Errorf("%w: %w", session.ErrLost, ErrNotOurs)
	}
	return nil
}
