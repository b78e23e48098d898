package session

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
	if c.Closing.Err() != nil {
		return Wrap("", ErrClosed)
	}
	if ctx.Err() != nil {
		return Wrap("", ContextError(ctx))
	}
	n := c.IDs.Next()
	heard := make(chan struct{}, 1)
	c.mu.Lock()
	c.pings[n] = heard
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pings, n)
		c.mu.Unlock()
	}()
	open, stop := retry.Until(ctx, c.Closing)
	defer stop()
	began := time.Now()
	if c.Inbox.Wait(open) != nil {
		return c.unchecked(ctx, began, errNotSubscribed)
	}
	// With the caller's context: one that can be cancelled makes rueidis run its connection in the background
	// from then on, which costs a single goroutine a fifth of its speed.
	if err := c.Conn.Ping(WithoutDeadline(ctx), c.Inbox.Name(), c.IDs.Text(n), c.Sharded); err != nil {
		if ctx.Err() == nil {
			return Wrap("", WithSentinel(err))
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
	if c.Closing.Err() != nil {
		return Wrap("", ErrClosed)
	}
	err := ContextError(ctx)
	if silence := retry.Silence(began); silence != nil {
		err = Join(err, Unavailable(Join(what, silence)))
	}
	return Wrap("", err)
}
