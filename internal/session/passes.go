package session

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// The functions below are for package latchkeytest alone. This package lets time pass on the server of a test, while
// no time passes for the clients of the test: clients that live keep what they hold, as they would in that time.

// CatchUp does at once what the client does in the course of time: it renews all holds, reads the clock of the
// server, and asks for all waiters. It returns when Redis has answered, or after the command timeout.
func (c *Client) CatchUp() {
	ctx, cancel := context.WithTimeout(c.Stopped, c.Options.CommandTimeout)
	defer cancel()
	sent := time.Now()
	for c.Keeper.RenewAll(); !c.Keeper.RenewedSince(sent); c.Keeper.RenewAll() {
		// RenewAll leaves out a hold whose renewal is under way. Redis may have answered that renewal before the call
		// of CatchUp.
		if retry.Sleep(ctx, time.Millisecond) != nil {
			break
		}
	}
	sent = time.Now()
	if now, err := c.Conn.Time(WithoutDeadline(ctx), nil); err == nil {
		c.RecordClock(&c.clock, now, sent)
	}
	c.recheckAll()
}

// Missed acts as if the client could not renew for d: it ends all holds whose trust lasts no longer than d.
func (c *Client) Missed(d time.Duration) {
	c.Keeper.Jumped(d, time.Now(), func(*lease.Item) bool { return true })
}
