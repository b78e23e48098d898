package core

import (
	"context"
	"fmt"
	"time"
)

// unlockLate releases what was held when the client was closed. Nobody renews it any more, but until its
// trust ends nobody else has it either. It is sent once, and not for long: whoever is closing waits for
// nothing.
func (t *tenure) unlockLate(ctx context.Context, done *turn) error {
	c := t.client
	until := c.late.until(t)
	defer c.late.over(t)
	if !time.Now().Before(until) || !t.room.Settled(&t.waiter) {
		return ErrClosed
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, min(c.options.ReleaseTimeout, time.Until(until)))
	defer cancel()
	owned, err := t.commands.Release(withoutDeadline(ctx), t.endingOf(&release{turn: done}), 0, true)
	switch {
	case err != nil:
		return fmt.Errorf("%w: it was not released, and its lease runs out: %w", ErrClosed, public(err))
	case !owned:
		return fmt.Errorf("%w: %w", ErrLost, errNotOurs)
	}
	done.released()
	return nil
}
