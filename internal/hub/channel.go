package hub

import (
	"container/list"
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// steady is how long a subscription stands until its next loss is the first one.
const steady = 100 * time.Millisecond

// Channel is one subscription, which is begun again when it is lost.
type Channel struct {
	hub       *Hub
	group     *group
	name      string
	confirmed func()
	heard     func(string)

	// guarded by hub.mu
	users      int
	idle       *list.Element // in the group's list, while nobody uses it
	left       time.Time     // since when nobody does
	now        *Subscription // nil: none; there will be one after retry, or Resume
	retry      *time.Timer
	backoff    retry.Backoff
	isUp       bool
	up         chan struct{} // closed once the subscription is confirmed; nil while nobody waits for that
	since      time.Time     // when it was confirmed last
	announcing bool          // confirmed runs
	again      bool          // and must run again
}

// Close gives the channel back. When nobody uses it for half a minute it is not listened to any more.
func (c *Channel) Close() {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.users--; c.users > 0 {
		return
	}
	c.left = time.Now()
	c.idle = c.group.idle.PushBack(c)
	if c.now == nil { // the next one begins it anew
		h.forget(c)
	}
	h.cool(c.group)
}

// Name is the channel.
func (c *Channel) Name() string { return c.name }

// Up reports whether the subscription is confirmed.
func (c *Channel) Up() bool {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return c.isUp
}

// Wait returns when the subscription is confirmed, or with the cause when ctx ends.
func (c *Channel) Wait(ctx context.Context) error {
	c.hub.mu.Lock()
	if c.isUp {
		c.hub.mu.Unlock()
		return nil
	}
	if c.up == nil {
		c.up = make(chan struct{})
	}
	up := c.up
	c.hub.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// confirm is told of a confirmation. It runs where the subscription is read.
func (c *Channel) confirm(s *Subscription) {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.now != s || h.closed {
		return
	}
	if !c.isUp {
		c.isUp, c.since = true, time.Now()
	}
	if c.up != nil {
		close(c.up)
		c.up = nil
	}
	c.again = true
	if !c.announcing {
		c.announcing = true
		h.running.Go(c.announce)
	}
}

// announce calls confirmed as long as there is a confirmation that it has not been called for.
func (c *Channel) announce() {
	h := c.hub
	for {
		h.mu.Lock()
		if !c.again || h.closed {
			c.announcing = false
			h.mu.Unlock()
			return
		}
		c.again = false
		h.mu.Unlock()
		c.confirmed()
	}
}

// lost is told of the end of a subscription. The next one begins soon, if anybody uses the channel.
func (c *Channel) lost(s *Subscription, err error) {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.now != s {
		return
	}
	if c.isUp && time.Since(c.since) > steady {
		c.backoff.Reset()
	}
	c.now, c.isUp = nil, false
	if c.users > 0 {
		c.retry = time.AfterFunc(c.backoff.Next(), func() { c.begin(err) })
	} else {
		h.forget(c)
	}
}

// begin subscribes again.
func (c *Channel) begin(err error) {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.running.Add(1)
	defer h.running.Done()
	h.mu.Unlock() // the logger is the user's
	h.log.Debug("latchkey: subscription ended", "channel", c.name, "error", err)
	h.mu.Lock()
	h.subscribe(c)
}
