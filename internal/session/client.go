package session

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/records"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Client is the inside of the root package's Client. [New] makes it. Its exported fields do not change after
// that, and its methods are safe for concurrent use.
type Client struct {
	// IDs makes the ids of this client.
	IDs *IDs
	// Conn runs the scripts.
	Conn lua.Conn
	// Sharded reports whether this is a cluster, with shard channels.
	Sharded bool
	// Options are what it was made with.
	Options Options
	// Hub has the subscriptions.
	Hub *hub.Hub
	// Inbox is the one that is always open; nil of a client without subscriptions. In a cluster only health
	// checks and answers to attempts use it: each queue has its own there.
	Inbox *hub.Channel
	// Keeper renews what is held.
	Keeper *lease.Keeper
	// Notifier calls hooks and the logger where no caller waits for them.
	Notifier Notifier
	// Records are what clients tell each other of their holds and waits.
	Records *records.Records
	// HeldAtClose is what was still held when the client was closed.
	HeldAtClose HeldAtClose
	// Began is when the client was made.
	Began time.Time
	// Closing ends when nothing may be acquired any more. Its cause is ErrClosed.
	Closing context.Context
	// Stopped ends when nothing is sent any more.
	Stopped context.Context

	closeOwned  func()         // closes what the client owns
	connections []*Connections // which it owns

	// askAside sends a command where it does not hold up other commands, if there is such a connection.
	askAside      func(context.Context, ...string) (string, error)
	evictionAsked atomic.Bool

	health     [healthParts]*retry.Health
	clock      clock.Clock  // of the server; not of a cluster, which has many
	nodeClocks sync.Map     // of a cluster: address -> *clock.Clock
	watching   atomic.Bool  // the clock is read now and then
	jumpRounds atomic.Int32 // of renewals that are still to come after a jump; 2: one, and then once more

	beginClosing    context.CancelCauseFunc
	stop            context.CancelFunc
	isShutDown      atomic.Bool // the first Shutdown or Close has begun
	shutDownOver    chan struct{}
	shutdownWait    context.Context // ends when Shutdown waits no longer
	endShutdownWait context.CancelFunc

	registry  registry
	gathering gathering

	mu         sync.Mutex
	running    sync.WaitGroup // of Go; nothing is added once isStopped is set
	isStopped  bool
	targets    map[targetKey]entry
	floors     floors
	pings      map[uint64]chan struct{}
	unreadable unreadable
	refusals   refusals
	redials    redials
	sparing    sparing
	agenda     agenda
}

// healthParts is in how many parts a client divides the slots of a cluster, to tell which of them are away.
// Without a cluster all names are in one.
const healthParts = 64

func (c *Client) newHealth() *retry.Health {
	return &retry.Health{
		Context: c.Stopped,
		Go:      c.Go,
		Down:    c.down,
		Lasting: func() {
			if !c.Sharded { // there, other nodes may be well; a grant that reaches no waiter costs the short lease
				c.Hub.Suspend()
			}
		},
		Patience:  c.Options.Lease / 3,
		Elsewhere: c.elsewhere,
		Up:        c.up,
	}
}

// Go runs f in a goroutine that Close waits for. Once the client is closed it does nothing.
func (c *Client) Go(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isStopped {
		c.running.Go(f)
	}
}

// inboxConfirmed runs after each confirmation of the standing inbox. What was published before it may be
// lost.
func (c *Client) inboxConfirmed() {
	if hook := c.Options.Observer.Subscribed; hook != nil {
		c.Notifier.Notify(hook)
	}
	c.Keeper.RenewAll()
	c.Go(c.warnOfEviction)
	if c.Sharded {
		c.Go(c.readNodeClocks)
		return
	}
	// It may be another server by now, with another clock. Without an answer another reply tells it.
	sent := time.Now()
	if now, err := c.Conn.Time(context.Background(), nil); err == nil {
		c.RecordClock(&c.clock, now, sent)
	}
	c.recheckAll()
}

// queues returns all queues that a goroutine may wait in.
func (c *Client) queues() []Queue { return inUse[Queue](c) }

// Leaving is what Redis may still get of waits for that key which were given up, of all families together:
// see [Queue]. Tests wait for the end of it.
func (c *Client) Leaving(key string) (unheard, unsettled bool) {
	for _, q := range c.queues() {
		if q.Name() == key {
			one, other := q.Leaving()
			unheard, unsettled = unheard || one, unsettled || other
		}
	}
	return unheard, unsettled
}

func (c *Client) recheckAll() {
	var g errgroup.Group
	g.SetLimit(64)
	for _, q := range c.queues() {
		g.Go(func() error { q.RecheckAll(); return nil })
	}
	_ = g.Wait() // each waiter is told its own error
}

// deliver takes a message to an inbox. It runs where the subscription is read: it neither blocks nor sends.
func (c *Client) deliver(m lua.Message) {
	if m.Kind == lua.Unknown {
		c.deliverUnreadable()
		return
	}
	if !c.IDs.made(m) {
		return // its sender cannot read what we write
	}
	if m.Kind == lua.Ping {
		c.receivePing(m.Number)
		return
	}
	t := c.Tenure(m.Number)
	switch {
	case t != nil && t.Target().Keys.Name() == m.Name && (m.Kind != lua.Grant || t.Target().Keys.Family() == m.Family):
		t.Hear(m)
	case m.Kind == lua.Grant: // also of another kind of thing, which is given back as that
		c.RefuseGrant(m)
	case m.Kind == lua.Attempt: // what it found is over
		c.Go(func() { c.Answer(m) })
	}
}

// Answer tells the client that has sent an attempt to ask once more. It is a hint, so its error is dropped.
func (c *Client) Answer(m lua.Message) {
	client, number, _ := strings.Cut(m.Asker, ":")
	_ = c.Conn.Answer(context.Background(), c.inboxOf(client), number, m.Name, c.Sharded)
}

// inboxOf is the name of a client's standing inbox. In a cluster the client's id decides which node has it.
func (c *Client) inboxOf(client string) string {
	if c.Sharded {
		return lua.Inbox("{" + client + "}")
	}
	return lua.Inbox(client)
}
