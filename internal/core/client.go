package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Client is the inside of the root package's Client.
type Client struct {
	ids      *ids
	conn     lua.Conn
	close    func()         // closes what the client owns
	owned    []*connections // of what the client owns
	sharded  bool
	options  ClientOptions
	hub      *hub.Hub
	inbox    *hub.Channel // the one standing inbox; with sharded pub/sub, that of health checks
	keeper   *lease.Keeper
	health   [slots]*retry.Health
	clock    clock        // of the server; a cluster has many
	nodes    sync.Map     // of a cluster: address -> *clock
	watching atomic.Bool  // the clock is asked for now and then
	setting  atomic.Int32 // how often holds are to be renewed because a clock was set: 2 is once more
	began    time.Time

	closing  context.Context // ends when nothing may be acquired any more; its cause is ErrClosed
	refuse   context.CancelCauseFunc
	stopped  context.Context // ends when nothing is sent any more
	stop     context.CancelFunc
	shutdown sync.Once
	patient  context.Context // ends when Shutdown waits no longer
	hurry    context.CancelFunc
	late     late

	registry registry

	mu        sync.Mutex
	running   sync.WaitGroup // of Go; added to under mu, not after isStopped
	isStopped bool
	places    map[address]entry
	floors    floors
	pings     map[uint64]chan struct{}
	hints     hints
	teller    teller
}

// slots is how finely a cluster client tells which part of the cluster is away. Others use one.
const slots = 64

func (c *Client) newHealth() *retry.Health {
	return &retry.Health{
		Context: c.stopped,
		Go:      c.Go,
		Down:    c.down,
		Lasting: func() {
			if !c.sharded { // there, other nodes may be well; a grant that reaches nobody costs the short lease
				c.hub.Suspend()
			}
		},
		Patience: c.options.Lease / 3,
		Up:       c.up,
	}
}

// Go runs f in a goroutine that Close waits for; not at all once the client is closed.
func (c *Client) Go(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isStopped {
		c.running.Go(f)
	}
}

// confirmed runs after each confirmation of the standing inbox: what was published before it may be lost.
func (c *Client) confirmed() {
	if hook := c.options.Observer.Subscribed; hook != nil {
		c.teller.tell(hook)
	}
	c.keeper.RenewAll()
	if c.sharded {
		c.Go(c.askNodes)
		return
	}
	sent := time.Now()
	if now, err := c.conn.Time(context.Background(), nil); err == nil { // it may be another server; else a reply will tell
		c.told(&c.clock, now, sent)
	}
	c.recheckAll()
}

// inUse returns those queues: all that anybody may wait in.
func (c *Client) inUse() []Queue {
	return placesOf[Queue](c)
}

func (c *Client) recheckAll() {
	var g errgroup.Group
	g.SetLimit(64)
	for _, r := range c.inUse() {
		g.Go(func() error { r.RecheckAll(); return nil })
	}
	_ = g.Wait() // the rooms report to their waiters
}

// deliver takes an inbox message. It runs where the subscription is read: it neither blocks nor calls the client.
func (c *Client) deliver(m lua.Message) {
	if m.Kind == lua.Unknown {
		c.hinted()
		return
	}
	if !c.ids.made(m) {
		return // it was not written by whoever reads what we write
	}
	if m.Kind == lua.Ping {
		c.ponged(m.Number)
		return
	}
	t := c.Tenure(m.Number)
	switch {
	case t != nil && t.Target().keys.Name() == m.Name:
		t.Hear(m)
	case m.Kind == lua.Grant:
		c.Go(func() { c.refuseGrant(m) })
	}
}

func (c *Client) ponged(n uint64) {
	c.mu.Lock()
	ping := c.pings[n]
	c.mu.Unlock()
	select {
	case ping <- struct{}{}:
	default: // nobody waits for it any more
	}
}

// refuseGrant releases what was granted to a tenure that is over (rule 3): a late copy of its acquire had
// queued again.
func (c *Client) refuseGrant(m lua.Message) {
	keys, err := lua.NewKeys(m.Family, m.Name, c.sharded)
	if err == nil {
		d := lua.Departure{Owner: c.ids.id(m.Number)}
		_, err = c.conn.Leave(context.Background(), keys, []lua.Departure{d}, c.floor(m.Family, m.Name))
	}
	if err != nil {
		c.options.Logger.Warn("latchkey: a grant for nobody was not released; its lease runs out", "name", m.Name, "error", err)
	}
}
