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

// Client is the inside of the root package's Client. [New] makes it. Its exported fields do not change after [New],
// and its methods are safe for concurrent use.
type Client struct {
	// IDs makes the ids of this client.
	IDs *IDs
	// Conn runs the scripts.
	Conn lua.Conn
	// Sharded reports whether this is a cluster, with shard channels.
	Sharded bool
	// Options are the options of the client.
	Options Options
	// Hub has the subscriptions.
	Hub *hub.Hub
	// Inbox is the inbox that is always open; nil for a client without subscriptions. In a cluster each queue has an
	// inbox of its own, and only health checks and answers to attempts use this inbox.
	Inbox *hub.Channel
	// Keeper renews the leases of tenures.
	Keeper *lease.Keeper
	// Notifier calls hooks and the logger where no caller waits for them.
	Notifier Notifier
	// Records are what clients tell each other of their holds and waits.
	Records *records.Records
	// HeldAtClose has the tenures that were still held when the client was closed.
	HeldAtClose HeldAtClose
	// Began is when the client was made.
	Began time.Time
	// Closing ends when the client acquires nothing any more. Its cause is ErrClosed.
	Closing context.Context
	// Stopped ends when the client sends nothing any more.
	Stopped context.Context

	closeOwned  func()         // closes what the client owns
	connections []*Connections // the connections that the client owns

	// askAside sends a command. If the client has a connection where the command holds up no others, askAside uses
	// this connection.
	askAside      func(context.Context, ...string) (string, error)
	evictionAsked atomic.Bool

	questions  questions
	health     [healthParts]*retry.Health
	clock      clock.Clock  // the server's clock; unused in a cluster, which has many clocks
	nodeClocks sync.Map     // of a cluster: address -> *clock.Clock
	watching   atomic.Bool  // the client reads the clock now and then
	jumpRounds atomic.Int32 // rounds of renewals still to come after a jump; 2: the round under way, and then one more

	beginClosing    context.CancelCauseFunc
	stop            context.CancelFunc
	isShutDown      atomic.Bool // the first Shutdown or Close has begun
	shutDownOver    chan struct{}
	shutdownWait    context.Context // ends when Shutdown waits no longer
	endShutdownWait context.CancelFunc

	registry  registry
	gathering gathering

	mu         sync.Mutex
	running    sync.WaitGroup // the goroutines of Go; none is added once isStopped is set
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

// healthParts is the number of parts into which a client divides the slots of a cluster, to tell which parts are
// away. Without a cluster all names are in one part.
const healthParts = 64

func (c *Client) newHealth() *retry.Health {
	return &retry.Health{
		Context: c.Stopped,
		Go:      c.Go,
		Down:    c.down,
		Lasting: func() {
			if !c.Sharded { // in a cluster other nodes may be well; a grant that reaches no waiter costs a short lease
				c.Hub.Suspend()
			}
		},
		Patience:  c.Options.Lease / 3,
		Elsewhere: c.elsewhere,
		Up:        c.up,
	}
}

// Go runs f in a goroutine that Close waits for. Once the client is closed, Go does nothing.
func (c *Client) Go(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isStopped {
		c.running.Go(f)
	}
}

// inboxConfirmed runs each time Redis has confirmed the standing inbox. Messages from before the confirmation may be
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
	// The server may be another one by now, with another clock. If it does not answer, another reply tells the clock.
	sent := time.Now()
	if now, err := c.Conn.Time(context.Background(), nil); err == nil {
		c.RecordClock(&c.clock, now, sent)
	}
	c.recheckAll()
}

// queues returns all queues that a goroutine may wait in.
func (c *Client) queues() []Queue { return inUse[Queue](c) }

// Leaving reports what is still open about waits for that key which this process gave up, over all families: see
// [Queue]. Tests wait until both results are false.
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
	_ = g.Wait() // each waiter gets its own error
}

// deliver takes a message to an inbox. It runs where the client reads the subscription, so it neither blocks nor
// sends.
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
	case m.Kind == lua.Grant: // also for a tenure of another family: the grant goes back by the message's family
		c.RefuseGrant(m)
	case m.Kind == lua.Attempt: // the tenure that the attempt found is over
		c.Go(func() { c.Answer(m) })
	}
}

// Answer tells the client that has sent an attempt to ask once more. The message is a hint, so Answer drops its
// error.
func (c *Client) Answer(m lua.Message) {
	client, number, _ := strings.Cut(m.Asker, ":")
	_ = c.Conn.Answer(context.Background(), c.inboxOf(client), number, m.Name, c.Sharded)
}

// inboxOf returns the name of a client's standing inbox. In a cluster the client's id decides which node has this
// inbox.
func (c *Client) inboxOf(client string) string {
	if c.Sharded {
		return lua.Inbox("{" + client + "}")
	}
	return lua.Inbox(client)
}
