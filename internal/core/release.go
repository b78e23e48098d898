package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// unlock releases the tenure in Redis and waits for that until ctx ends, or for the release timeout if it has. The
// release itself goes on until the trust ends: a lock that is not needed any more must not stay taken. done is the turn
// that ends with it.
func (t *tenure) unlock(ctx context.Context, done *turn) error {
	c := t.client
	if !c.keeper.Remove(&t.item) {
		return t.late()
	}
	if ctx.Done() == nil {
		return t.release(ctx, &release{turn: done})
	}
	r := &release{turn: done}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), c.options.ReleaseTimeout)
		defer cancel()
	}
	err := t.release(ctx, r)
	if r.done {
		return err
	}
	c.Go(func() { _ = t.release(context.Background(), r) }) // the observer hears of its success
	return fmt.Errorf("%w: the release goes on: %w", ErrUnknownOutcome, ended(ctx))
}

// late ends a tenure whose lease is over before its release.
func (t *tenure) late() error {
	t.mu.Lock()
	loss := t.loss
	t.mu.Unlock()
	if loss == nil {
		loss = lossOf(lease.ErrExpired)
	}
	t.end()
	t.forget(false)
	return loss
}

// release is what the sends of one release know of those before.
type release struct {
	turn       *turn
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
	entry := t.strayEntry()
	for {
		owned, err := c.conn.Release(withoutDeadline(ctx), t.keys, t.waiter.Owner, entry, c.seen.Load(), t.rest(r.turn))
		if err == nil {
			t.health().Succeeded()
			if owned || r.unanswered { // rule 9: a send before this one released it
				c.options.Observer.released(r.turn)
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
func (t *tenure) rest(done *turn) int64 {
	if t.terms.minHold == 0 {
		return 0
	}
	return max(milliseconds(time.Until(done.moment.Add(t.terms.minHold))), 0)
}

// strayEntry is the tenure's queue entry if a copy of its acquire may have restored that, else empty.
func (t *tenure) strayEntry() string {
	if !t.room.Stray(&t.waiter) {
		return ""
	}
	return t.claim(&t.waiter).Entry()
}
