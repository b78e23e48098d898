// Package hub keeps a client's subscriptions: it subscribes again for as long as a channel is open, says when
// a subscription is confirmed, and hands on messages. What a lost connection dropped is gone: the owner of a
// channel must ask Redis again after each confirmation.
package hub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// Hub is the subscriptions of one client. It is safe for concurrent use.
type Hub struct {
	inboxes Source
	others  Source
	deliver func(lua.Message)
	log     *slog.Logger

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex
	channels  map[string]*Channel
	suspended chan struct{} // closed by Resume; nil while not suspended
}

// New returns a hub, which subscribes to inboxes at one source and to all other channels at the other, which
// may be the same. deliver is called on the goroutine that reads the subscription, one message after the
// other: it must not block and must not call the client.
func New(inboxes, others Source, deliver func(lua.Message), log *slog.Logger) *Hub {
	ctx, cancel := context.WithCancel(context.Background())
	return &Hub{
		inboxes: inboxes, others: others, deliver: deliver, log: log,
		ctx: ctx, cancel: cancel, channels: map[string]*Channel{},
	}
}

// Close ends all subscriptions and waits for that.
func (h *Hub) Close() {
	h.mu.Lock()
	h.cancel()
	h.mu.Unlock()
	h.cut()
	h.running.Wait()
	h.cut() // what a goroutine was just about to begin
	h.inboxes.Wait()
	h.others.Wait()
}

func (h *Hub) cut() {
	h.inboxes.Cut()
	h.others.Cut()
}

// Suspend ends all subscriptions until Resume: a client that cannot send commands must not be granted
// anything.
func (h *Hub) Suspend() {
	h.mu.Lock()
	first := h.suspended == nil
	if first {
		h.suspended = make(chan struct{})
		for _, c := range h.channels {
			c.interrupt()
		}
	}
	h.mu.Unlock()
	if first {
		h.cut()
	}
}

// Resume ends Suspend.
func (h *Hub) Resume() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.suspended != nil {
		close(h.suspended)
		h.suspended = nil
	}
}

// warm is how long a channel that nobody uses is listened to: the next waiter often comes soon.
var warm = 30 * time.Second // shorter in a test

// steady is how long a subscription stands until its next loss is the first one.
const steady = 100 * time.Millisecond

// Open returns the channel of an inbox, subscribed or about to be. confirmed is called after each
// confirmation of its subscription, on a goroutine of its own, never two at a time. Each Open needs a Close.
func (h *Hub) Open(name string, confirmed func()) *Channel {
	return h.open(h.inboxes, name, confirmed, func(text string) { h.deliver(lua.ParseMessage(text)) })
}

// Listen is Open for a channel that is no inbox: heard is called with its messages, under the terms of
// deliver. Whoever opens a channel that is open must bring the same functions.
func (h *Hub) Listen(name string, confirmed func(), heard func(string)) *Channel {
	return h.open(h.others, name, confirmed, heard)
}

func (h *Hub) open(source Source, name string, confirmed func(), heard func(string)) *Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[name]
	if c == nil {
		ctx, cancel := context.WithCancel(h.ctx)
		c = &Channel{hub: h, source: source, name: name, ctx: ctx, cancel: cancel, up: make(chan struct{}), news: make(chan struct{}, 1)}
		c.confirmed, c.heard = confirmed, heard
		h.channels[name] = c
		if h.ctx.Err() == nil {
			h.running.Add(2)
			go c.receive()
			go c.announce()
		}
	}
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
	c.users++
	return c
}

// Channel is one subscription.
type Channel struct {
	hub       *Hub
	source    Source
	name      string
	confirmed func()
	heard     func(string)
	ctx       context.Context
	cancel    context.CancelFunc
	news      chan struct{} // capacity 1: a confirmation that announce has not seen

	// guarded by hub.mu
	users   int
	idle    *time.Timer
	up      chan struct{} // closed while the subscription is confirmed
	isUp    bool
	since   time.Time          // when it was confirmed last
	abandon context.CancelFunc // ends the running Receive
}

// Close gives the channel back. When nobody uses it for half a minute it is not listened to any more.
func (c *Channel) Close() {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	c.users--
	if c.users > 0 || c.idle != nil {
		return
	}
	var idle *time.Timer
	idle = time.AfterFunc(warm, func() {
		h.mu.Lock()
		over := c.idle == idle
		if over {
			c.cancel()
			delete(h.channels, c.name)
		}
		others := len(h.channels)
		h.mu.Unlock()
		if over {
			c.source.Left(others)
		}
	})
	c.idle = idle
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
	up := c.up
	c.hub.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Channel) set(up bool) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if up == c.isUp {
		return
	}
	c.isUp = up
	if up {
		c.since = time.Now()
		close(c.up)
	} else {
		c.up = make(chan struct{})
	}
}

func (c *Channel) interrupt() {
	if c.abandon != nil {
		c.abandon()
	}
}

// receive keeps the channel subscribed.
func (c *Channel) receive() {
	defer c.hub.running.Done()
	var backoff wait.Backoff
	for c.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(c.ctx)
		if resumed := c.begin(cancel); resumed != nil {
			cancel()
			select {
			case <-resumed:
			case <-c.ctx.Done():
			}
			continue
		}
		hooked := rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
			// Runs on the connection's reader: nothing here may block.
			up := s.Kind == "subscribe" || s.Kind == "ssubscribe"
			c.set(up)
			if up {
				select {
				case c.news <- struct{}{}:
				default:
				}
			}
		})
		err := c.source.Receive(hooked, c.name, func(m rueidis.PubSubMessage) { c.heard(m.Message) })
		if c.stood() > steady {
			backoff.Reset()
		}
		c.set(false)
		cancel()
		if c.ctx.Err() == nil {
			c.hub.log.Debug("latchkey: subscription ended", "channel", c.name, "error", err)
			_ = wait.Sleep(c.ctx, backoff.Next())
		}
	}
}

// stood returns for how long the subscription has been confirmed.
func (c *Channel) stood() time.Duration {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if !c.isUp {
		return 0
	}
	return time.Since(c.since)
}

// begin makes the coming Receive interruptible, or returns the channel that ends the suspension.
func (c *Channel) begin(cancel context.CancelFunc) (resumed chan struct{}) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.abandon = cancel
	return c.hub.suspended
}

func (c *Channel) announce() {
	defer c.hub.running.Done()
	for {
		select {
		case <-c.news:
			c.confirmed()
		case <-c.ctx.Done():
			return
		}
	}
}
