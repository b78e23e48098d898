package hub

import (
	"container/list"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// stableAfter is how long a subscription must last before the pause after its loss is a short one again.
const stableAfter = 100 * time.Millisecond

// Channel is one channel of Redis. If its subscription is lost, the hub subscribes again. [Hub.Open] and [Hub.Listen]
// return a Channel. Its methods are safe for concurrent use.
type Channel struct {
	hub       *Hub
	group     *group
	name      string
	confirmed func()
	heard     func(string)
	unbroken  atomic.Uint64 // see Unbroken. Written with hub.mu held

	// guarded by hub.mu
	users       int
	idle        *list.Element // in the group's list, while the channel has no users
	unusedSince time.Time
	current     *Subscription // nil: none, until retry or Resume begins one
	retry       *time.Timer
	backoff     retry.Backoff
	refused     error         // the user may not subscribe; nil once a subscription is confirmed
	news        chan struct{} // closed once the subscription is confirmed or refused; nil while no caller waits for that
	upSince     time.Time     // since when the subscription is confirmed
	lostAt      time.Time     // since when the server is away, as far as is known; zero: it is not
	why         error         // why the server is away
	confirms    uint64        // confirmations until now
	announcing  bool          // a call of confirmed runs
	again       bool          // confirmed must be called again
}

// Close ends one Open or Listen. The hub gives up a channel that has had no users for half a minute.
func (c *Channel) Close() {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.users--; c.users > 0 {
		return
	}
	c.unusedSince = time.Now()
	c.idle = c.group.idle.PushBack(c)
	if c.current == nil { // the next Open subscribes
		h.forget(c)
	}
	h.forgetIdle(c.group)
}

// Name returns the name of the channel.
func (c *Channel) Name() string { return c.name }

// Up reports whether the subscription is confirmed. It takes no lock.
func (c *Channel) Up() bool { return c.Unbroken() != 0 }

// Unbroken returns a number that stays the same for as long as the channel can have missed no message. It is 0 while
// the subscription is not confirmed. Unbroken takes no lock: every Unlock of a lock that lingers calls Unbroken, and
// the Unlocks of all names would wait for one another.
func (c *Channel) Unbroken() uint64 { return c.unbroken.Load() }

// Away returns why the channel hears nothing. It returns nil while the channel hears or subscribes, and if the user
// may not subscribe. It also returns nil for the moment that a new subscription takes if Redis is well.
func (c *Channel) Away() error {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.Up() || c.lostAt.IsZero() || retry.Silence(c.lostAt) == nil {
		return nil
	}
	ago := time.Since(c.lostAt).Round(time.Millisecond)
	if c.why == nil {
		return fmt.Errorf("the subscription ended %v ago", ago)
	}
	return fmt.Errorf("the subscription was lost %v ago: %w", ago, c.why)
}

// Wait returns when the subscription is confirmed, or with the cause when ctx ends.
func (c *Channel) Wait(ctx context.Context) error { return c.wait(ctx, true) }

// WaitUnlessRefused is Wait, but returns the error of [Channel.Refused] as soon as the server forbids the
// subscription.
func (c *Channel) WaitUnlessRefused(ctx context.Context) error { return c.wait(ctx, false) }

func (c *Channel) wait(ctx context.Context, alsoRefused bool) error {
	for {
		news, refused := c.awaitable()
		switch {
		case news == nil:
			return nil
		case refused != nil && !alsoRefused:
			return refused
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// awaitable returns a channel that is closed at the next confirmation, or when the server begins to refuse the
// subscription. It returns nil if the subscription is confirmed. refused is the error of [Channel.Refused].
func (c *Channel) awaitable() (news <-chan struct{}, refused error) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.Up() {
		return nil, nil
	}
	if c.news == nil {
		c.news = make(chan struct{})
	}
	return c.news, c.refused
}

// tell wakes the callers that wait for news. The caller holds the mutex.
func (c *Channel) tell() {
	if c.news != nil {
		close(c.news)
		c.news = nil
	}
}

// Refused returns an error while the server forbids the subscription, for which [lua.Forbidden] reports true.
func (c *Channel) Refused() error {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return c.refused
}

// confirm takes a confirmation. It runs on the goroutine that reads the subscription, so it does not block.
func (c *Channel) confirm(s *Subscription) {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.current != s || h.closed {
		return
	}
	c.confirms++
	if !c.Up() {
		c.upSince = time.Now()
	}
	c.lostAt, c.why = time.Time{}, nil
	c.unbroken.Store(c.confirms)
	c.refused = nil
	delete(h.refused, c.name)
	c.tell()
	c.again = true
	if !c.announcing {
		c.announcing = true
		h.running.Go(c.announce)
	}
}

// announce calls c.confirmed until a call has begun after the last confirmation.
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

// lost takes the end of a subscription. If the channel has users, the next subscription begins soon.
func (c *Channel) lost(s *Subscription, err error) {
	if c.end(s, err) {
		c.hub.log.Warn("latchkey: the user may not subscribe", "channel", c.name, "error", Refused("subscribe to", c.name, err))
	}
}

// end is lost without the log. It reports whether lost must log that the server forbids the channel.
func (c *Channel) end(s *Subscription, err error) (tell bool) {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.current != s {
		return false
	}
	if lua.Forbidden(err) && c.refused == nil {
		c.refused = Refused("subscribe to", c.name, err)
		c.tell()
		tell = h.isNew(c.name)
	}
	if c.Up() {
		if time.Since(c.upSince) > stableAfter {
			c.backoff.Reset()
		}
	}
	if c.lostAt.IsZero() && !lua.Forbidden(err) { // also when it was never confirmed
		c.lostAt, c.why = time.Now(), err
	}
	c.current = nil
	c.unbroken.Store(0)
	if c.users > 0 {
		c.retry = time.AfterFunc(c.backoff.Next(), func() { c.resubscribe(err) })
	} else {
		h.forget(c)
	}
	return tell
}

// resubscribe subscribes again, after the last subscription ended with err.
func (c *Channel) resubscribe(err error) {
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

// drop ends the current subscription, and reports whether there was one. The caller holds the mutex.
func (c *Channel) drop() bool {
	if c.current == nil {
		return false
	}
	c.group.source.Drop(c.current)
	c.current = nil
	c.unbroken.Store(0)
	return true
}
