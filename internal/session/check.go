package session

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

var (
	errNotSubscribed = errors.New("the inbox is not subscribed")
	errNotReceived   = errors.New("the inbox received nothing")
	errElsewhere     = errors.New("scripts see no subscriber of the inbox: it is missing there, or at another server, and grants pass this client by")
)

// Check is documented by the root package.
func (c *Client) Check(ctx context.Context) error {
	if c.Closing.Err() != nil {
		return fail.Wrap("", fail.ErrClosed)
	}
	if ctx.Err() != nil {
		return fail.Wrap("", fail.ContextError(ctx))
	}
	if c.Inbox == nil {
		return c.checkCommands(ctx)
	}
	n, received := c.expectPing()
	defer c.forgetPing(n)
	open, stop := retry.Until(ctx, c.Closing)
	defer stop()
	began := time.Now()
	if err := c.Inbox.WaitUnlessRefused(open); lua.Forbidden(err) {
		return fail.Wrap("", err)
	} else if err != nil {
		return c.checkError(ctx, began, errNotSubscribed)
	}
	// The ping has the caller's context, and not open: open can always be cancelled, but perhaps the caller's context
	// cannot. Once a command has come with a context that can be cancelled, rueidis runs the connection in the
	// background. That costs a single goroutine a fifth of its speed.
	var heard bool
	err := onceMore(ctx, func() (err error) {
		heard, err = c.ping(WithoutDeadline(ctx), n)
		return err
	})
	if err != nil {
		switch {
		case lua.Forbidden(err):
			return fail.Wrap("", hub.Refused("publish to", c.Inbox.Name(), err))
		case ctx.Err() == nil:
			return fail.Wrap("", fail.WithSentinel(err))
		}
		return c.checkError(ctx, began, nil)
	}
	if !heard {
		c.Options.Logger.Warn("latchkey: scripts see no subscriber of the inbox: it is missing there, or at another server", "channel", c.Inbox.Name())
		return fail.Wrap("", fail.Unavailable(errElsewhere))
	}
	select {
	case <-received:
		return nil
	case <-open.Done():
		return c.checkError(ctx, began, errNotReceived)
	}
}

func (c *Client) ping(ctx context.Context, n uint64) (heard bool, err error) {
	keys, err := c.probed()
	if err != nil {
		return false, err
	}
	return c.Conn.Ping(ctx, keys, c.Inbox.Name(), c.IDs.Suffix(n))
}

// checkCommands is Check of a client without subscriptions.
func (c *Client) checkCommands(ctx context.Context) error {
	began := time.Now()
	switch err := onceMore(ctx, func() error { return c.probe(WithoutDeadline(ctx)) }); {
	case err == nil:
		return nil
	case ctx.Err() == nil:
		return fail.Wrap("", fail.WithSentinel(err))
	default:
		return c.checkError(ctx, began, nil)
	}
}

// onceMore sends once more if the server has not answered. A connection that has just ended, for example after being
// idle for too long, says nothing of the server: the next connection does. A ping can be repeated.
func onceMore(ctx context.Context, send func() error) error {
	err := send()
	if _, answered := rueidis.IsRedisErr(err); err == nil || answered || ctx.Err() != nil {
		return err
	}
	return send()
}

// probe sends a command that changes nothing.
func (c *Client) probe(ctx context.Context) error {
	keys, err := c.probed()
	if err != nil {
		return err
	}
	return c.Conn.Probe(ctx, keys)
}

// probed returns the keys of a name that is free, and that access rules allow.
func (c *Client) probed() (*lua.Keys, error) {
	name := c.Options.Prefix + c.IDs.Client[len(c.IDs.Client)-identity.RandomLength:]
	return lua.NewKeys(lua.Locks, name[:min(len(name), lua.MaxName)], c.Sharded)
}

// expectPing returns the number of a ping that the caller is about to send, and a channel that gets a value when the
// ping has come back.
func (c *Client) expectPing() (uint64, <-chan struct{}) {
	n, received := c.IDs.Next(), make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pings[n] = received
	return n, received
}

func (c *Client) forgetPing(n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pings, n)
}

// receivePing takes a ping that has come back. It runs where the client reads the subscription, so it does not block.
func (c *Client) receivePing(n uint64) {
	c.mu.Lock()
	received := c.pings[n]
	c.mu.Unlock()
	select {
	case received <- struct{}{}:
	default: // the caller of Check waits no more
	}
}

// checkError returns the error of a check that ended before its answer. missing is what the check waited for. The
// error blames Redis only if Redis had enough time.
func (c *Client) checkError(ctx context.Context, began time.Time, missing error) error {
	if c.Closing.Err() != nil {
		return fail.Wrap("", fail.ErrClosed)
	}
	err := fail.ContextError(ctx)
	if away := c.health[0].Away(); away != nil && !c.Sharded {
		return fail.Wrap("", fail.Join(err, fail.Unavailable(away)))
	}
	if silence := retry.Silence(began); silence != nil {
		err = fail.Join(err, fail.Unavailable(fail.Join(missing, silence)))
	}
	return fail.Wrap("", err)
}
