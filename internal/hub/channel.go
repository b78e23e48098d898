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

// stableAfter is how long a subscription must stand for the pause after its loss to be a short one again.
const stableAfter = 100 * time.Millisecond

// Channel is one channel of Redis. Its subscription is begun again when it is lost. [Hub.Open] and
// [Hub.Listen] return it. Its methods are safe for concurrent use.
type Channel struct {
	hub       *Hub
	group     *group
	name      string
	confirmed func()
	heard     func(string)
	unbroken  atomic.Uint64 // see Unbroken. Written with hub.mu held

	// guarded by hub.mu
	users       int
	idle        *list.Element // in the group's list, while it has no users
	unusedSince time.Time
	current     *Subscription // nil: none; there will be one after retry, or Resume
	retry       *time.Timer
	backoff     retry.Backoff
	refused     error         // the user may not subscribe; nil once a subscription is confirmed
	news        chan struct{} // closed once the subscription is confirmed or refused; nil while no caller waits for that
	upSince     time.Time     // when it was confirmed last
	lostAt      time.Time     // since when the server is away, as far as is known; zero: it is not
	why         error         // of that
	confirms    uint64        // how often it was confirmed
	announcing  bool          // confirmed runs
	again       bool          // and must run again
}

// Close ends one Open or Listen. A channel without users is given up after half a minute.
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

// Unbroken returns a number that is the same for as long as no message can have been missed; 0 while the
// subscription is not confirmed. It takes no lock: every Unlock of a lock that lingers asks, and those of all
// names would wait for one another.
func (c *Channel) Unbroken() uint64 { return c.unbroken.Load() }

// Away returns why the channel hears nothing; nil while it does, while it subscribes, and where the user may
// not. It is also nil for the moment that it takes to subscribe again where Redis is well.
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

// WaitUnlessRefused is Wait, which returns [Channel.Refused] as soon as there is such an error.
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

// awaitable returns what is closed at the next confirmation, or when the subscription begins to be refused;
// nil when it is confirmed. refused is as for [Channel.Refused].
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

// tell wakes the callers that wait for news. It is called with the mutex.
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

// confirm takes a confirmation. It runs where the subscription is read: it does not block.
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

// lost takes the end of a subscription. The next one begins soon, if the channel has users.
func (c *Channel) lost(s *Subscription, err error) {
	if c.end(s, err) {
		c.hub.log.Warn("latchkey: the user may not subscribe", "channel", c.name, "error", Refused("subscribe to", c.name, err))
	}
}

// end is lost. It reports whether it is to be logged that the server forbids the channel.
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

// drop ends the current subscription, and reports whether there was one. It is called with the mutex.
func (c *Channel) drop() bool {
	if c.current == nil {
		return false
	}
	c.group.source.Drop(c.current)
	c.current = nil
	c.unbroken.Store(0)
	return true
}
