// Package hub keeps a client's subscriptions. While a channel is open, the hub subscribes again after each loss, says
// when a subscription is confirmed, and delivers messages. Messages that a lost connection dropped are gone: the
// owner of a channel must ask Redis again after each confirmation. internal/session makes a client's hub; the engines
// open channels.
//
// A channel costs no goroutine: each step for a channel begins with an event, and ends soon. So names without waiters
// cost nothing but memory.
package hub

import (
	"container/list"
	"log/slog"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Hub has the subscriptions of one client. [New] makes it. Its methods are safe for concurrent use.
type Hub struct {
	inboxes *group
	others  *group
	deliver func(lua.Message)
	log     *slog.Logger
	running sync.WaitGroup // goroutines of the hub

	mu        sync.Mutex
	channels  map[string]*Channel
	refused   map[string]bool // see isNew
	suspended bool
	closed    bool
}

// group has the channels of one source.
type group struct {
	source Source

	// guarded by hub.mu
	idle  list.List // *Channel values without users, the next to be given up first
	timer *time.Timer
}

// New returns a hub, which subscribes to inboxes at the source inboxes, and to all other channels at others. Both may
// be the same. The goroutine that reads the subscription calls deliver, one message after the other: deliver must not
// block, and must not call the client.
func New(inboxes, others Source, deliver func(lua.Message), log *slog.Logger) *Hub {
	return &Hub{
		inboxes: &group{source: inboxes}, others: &group{source: others}, deliver: deliver, log: log,
		channels: map[string]*Channel{}, refused: map[string]bool{},
	}
}

// Close ends all subscriptions, and waits for their end. No subscription follows.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for _, g := range []*group{h.inboxes, h.others} {
		if g.timer != nil {
			g.timer.Stop()
		}
	}
	h.dropAll()
	h.mu.Unlock()
	h.cut()
	h.running.Wait()
	h.inboxes.source.Wait()
	h.others.source.Wait()
}

func (h *Hub) cut() {
	h.inboxes.source.Cut()
	h.others.source.Cut()
}

// dropAll ends the subscription of each channel, and forgets the channels without users. The caller holds the mutex.
func (h *Hub) dropAll() {
	for _, c := range h.channels {
		if c.retry != nil {
			c.retry.Stop()
		}
		c.drop()
		if c.users == 0 {
			h.forget(c)
		}
	}
}

// Suspend ends all subscriptions until Resume: Redis must not grant anything to a client that cannot send commands.
func (h *Hub) Suspend() {
	h.mu.Lock()
	first := !h.suspended
	if first {
		h.suspended = true
		h.dropAll()
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
	if h.suspended {
		h.suspended = false
		for _, c := range h.channels {
			h.subscribe(c)
		}
	}
}

// idleTime is how long the hub listens to a channel without users: the next waiter often comes soon.
var idleTime = 30 * time.Second // shorter in a test

// Open returns the channel of an inbox, which is subscribed, or about to be. After each confirmation of the
// subscription the hub calls confirmed, on a goroutine of its own and never twice at a time. Each Open needs a Close.
func (h *Hub) Open(name string, confirmed func()) *Channel {
	return h.open(h.inboxes, name, confirmed, func(text string) { h.deliver(lua.ParseMessage(text)) })
}

// Reopen is [Hub.Open] for a channel that the hub still has, perhaps without users. For any other channel it returns
// nil.
func (h *Hub) Reopen(name string) *Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[name]
	if c != nil {
		c.leaveIdle()
		c.users++
	}
	return c
}

// Listen is Open for a channel that is no inbox. The hub calls heard with the messages of the channel, as [New] says
// of deliver. If the channel is open already, the caller must bring the same functions.
func (h *Hub) Listen(name string, confirmed func(), heard func(string)) *Channel {
	return h.open(h.others, name, confirmed, heard)
}

func (h *Hub) open(g *group, name string, confirmed func(), heard func(string)) *Channel {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[name]
	if c == nil {
		c = &Channel{hub: h, group: g, name: name, confirmed: confirmed, heard: heard}
		h.channels[name] = c
		h.subscribe(c)
	}
	c.leaveIdle()
	c.users++
	return c
}

// leaveIdle takes a channel from the list of channels without users. The caller holds the mutex.
func (c *Channel) leaveIdle() {
	if c.idle != nil {
		c.group.idle.Remove(c.idle)
		c.idle = nil
	}
}

// subscribe begins a subscription, unless the channel has one, or may have none. The caller holds the mutex.
func (h *Hub) subscribe(c *Channel) {
	if h.closed || h.suspended || c.current != nil || h.channels[c.name] != c {
		return
	}
	c.current = &Subscription{channel: c}
	c.group.source.Subscribe(c.current)
}

// forget gives up a channel without users. The caller holds the mutex.
func (h *Hub) forget(c *Channel) {
	c.leaveIdle()
	delete(h.channels, c.name)
	if c.drop() && c.group.source.Abandoned(len(h.channels)) {
		h.running.Go(c.group.source.Cut)
	}
}

// forgetIdle gives up the channels of a group that have had no users for long, and the oldest ones if there are too
// many. For the others it sets a timer. The caller holds the mutex.
func (h *Hub) forgetIdle(g *group) {
	if h.closed {
		return
	}
	for g.idle.Len() > 0 {
		c := g.idle.Front().Value.(*Channel)
		left := time.Until(c.unusedSince.Add(idleTime))
		if left > 0 && g.idle.Len() <= g.source.MaxIdle() {
			h.forgetIdleIn(g, left)
			return
		}
		h.forget(c)
	}
}

func (h *Hub) forgetIdleIn(g *group, d time.Duration) {
	if g.timer != nil {
		return
	}
	g.timer = time.AfterFunc(d, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		g.timer = nil
		h.forgetIdle(g)
	})
}
