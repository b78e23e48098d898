package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// unlock releases the tenure in Redis and waits for that until ctx ends, or for the release timeout if it has. The
// release itself goes on until the trust ends: a lock that is not needed any more must not stay taken.
func (t *tenure) unlock(ctx context.Context) error {
	c := t.client
	var r release
	if ctx.Done() == nil {
		return t.release(ctx, &r)
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), c.options.ReleaseTimeout)
		defer cancel()
	}
	err := t.release(ctx, &r)
	if r.done {
		return err
	}
	c.Go(func() { _ = t.release(context.Background(), &r) }) // the observer hears of its success
	return fmt.Errorf("%w: the release goes on: %w", ErrUnknownOutcome, ended(ctx))
}

// release is what the sends of one release know of those before.
type release struct {
	unanswered bool // one was sent and not answered
	done       bool
}

// release sends the release until it is answered, ctx ends, or the trust has ended.
func (t *tenure) release(ctx context.Context, r *release) error {
	err := t.send(ctx, r)
	if ctx.Err() != nil && errors.Is(err, errInterrupted) {
		return err
	}
	r.done = true
	t.forget(false)
	t.end()
	return err
}

var errInterrupted = errors.New("interrupted")

func (t *tenure) send(ctx context.Context, r *release) error {
	c := t.client
	if !t.room.Settled(&t.waiter) {
		if err := t.patiently(ctx, func(ctx context.Context) error { return t.room.Settle(ctx, &t.waiter) }); err != nil {
			return t.undone(ctx, r, ErrUnavailable)
		}
	}
	entry := ""
	if t.room.Stray(&t.waiter) {
		entry = lua.Entry(t.waiter.Owner, milliseconds(t.waiter.Lease))
	}
	for {
		sent := ctx
		if _, ok := ctx.Deadline(); ok {
			sent = undated{ctx}
		}
		owned, err := c.conn.Release(sent, t.keys, t.waiter.Owner, entry, c.seen.Load(), t.rest())
		if err == nil {
			t.health().Succeeded()
			if owned || r.unanswered { // rule 9: a send before this one released it
				c.options.Observer.released(t.name, t.token, time.Since(t.moment))
				return nil
			}
			return fmt.Errorf("%w: %w", ErrLost, errNotOurs)
		}
		switch lua.Classify(err) {
		case lua.WrongType:
			return fmt.Errorf("%w: %w", ErrLost, outcome(err))
		case lua.NoAnswer:
			r.unanswered = true
		case lua.Refused:
		default:
			return outcome(err)
		}
		if ctx.Err() != nil {
			return errInterrupted
		}
		t.Failed(err)
		if t.patiently(ctx, t.Up) != nil {
			return t.undone(ctx, r, outcome(err))
		}
	}
}

// patiently waits until ctx or the trust ends.
func (t *tenure) patiently(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.item.Left())
	defer cancel()
	return f(ctx)
}

// undone is the error of a release that was not answered while it mattered.
func (t *tenure) undone(ctx context.Context, r *release, err error) error {
	switch {
	case t.client.stopped.Err() != nil:
		return ErrClosed
	case ctx.Err() != nil:
		return errInterrupted
	case r.unanswered:
		return fmt.Errorf("%w: the lease ran out: %w", ErrUnknownOutcome, err)
	default:
		return fmt.Errorf("%w: the lease ran out before a release was sent: %w", ErrLost, err)
	}
}

var errNotOurs = errors.New("another owner has it in Redis, or nobody")

// rest is how long the lock must stay taken after its release, in ms.
func (t *tenure) rest() int64 {
	if t.earliest.IsZero() {
		return 0
	}
	return max(milliseconds(time.Until(t.earliest)), 0)
}
