package core

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/retry"
)

var (
	errNotSubscribed = errors.New("the inbox is not subscribed")
	errDeaf          = errors.New("the inbox does not hear")
)

// Check is documented by the root package.
func (c *Client) Check(ctx context.Context) error {
	if c.closing.Err() != nil {
		return named("", ErrClosed)
	}
	if ctx.Err() != nil {
		return named("", ended(ctx))
	}
	n := c.ids.next()
	heard := make(chan struct{}, 1)
	c.mu.Lock()
	c.pings[n] = heard
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pings, n)
		c.mu.Unlock()
	}()
	open, stop := retry.Until(ctx, c.closing)
	defer stop()
	began := time.Now()
	if c.inbox.Wait(open) != nil {
		return c.unchecked(ctx, began, errNotSubscribed)
	}
	// With the caller's context: one that can be cancelled makes rueidis run its connection in the background
	// from then on, which costs a single goroutine a fifth of its speed.
	if err := c.conn.Ping(withoutDeadline(ctx), c.inbox.Name(), c.ids.number(n), c.sharded); err != nil {
		if ctx.Err() == nil {
			return named("", public(err))
		}
		return c.unchecked(ctx, began, nil)
	}
	select {
	case <-heard:
		return nil
	case <-open.Done():
		return c.unchecked(ctx, began, errDeaf)
	}
}

// unchecked is the error of a check that ended early, with what was waited for: Redis is not to blame when it
// had no time.
func (c *Client) unchecked(ctx context.Context, began time.Time, what error) error {
	if c.closing.Err() != nil {
		return named("", ErrClosed)
	}
	err := ended(ctx)
	if silence := retry.Silence(began); silence != nil {
		err = join(err, unavailable(join(what, silence)))
	}
	return named("", err)
}
