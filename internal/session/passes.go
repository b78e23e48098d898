package session

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// What follows is for package latchkeytest, which lets time pass on the server of a test, while none passes
// for its clients: the ones that live keep what they hold, as they would in that time. Nothing else calls it.

// CatchUp does at once what the client does in the course of time: it renews all holds, reads the clock of
// the server, and has all waiters ask. It returns when that was answered, or after the command timeout.
func (c *Client) CatchUp() {
	ctx, cancel := context.WithTimeout(c.Stopped, c.Options.CommandTimeout)
	defer cancel()
	sent := time.Now()
	for c.Keeper.RenewAll(); !c.Keeper.RenewedSince(sent); c.Keeper.RenewAll() {
		// RenewAll leaves out what is being renewed. That renewal may have been answered before CatchUp was called.
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

// Missed ends holds that could not be renewed for d: the ones that are trusted for no longer than that.
func (c *Client) Missed(d time.Duration) {
	c.Keeper.Jumped(d, time.Now(), func(*lease.Item) bool { return true })
}
