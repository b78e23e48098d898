package session

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
	IDs        *ids
	Conn       lua.Conn
	closeOwned func()         // closes what the client owns
	owned      []*Connections // of what the client owns
	Sharded    bool
	Options    Options
	Hub        *hub.Hub
	Inbox      *hub.Channel // the one standing inbox; with sharded pub/sub, that of health checks
	Keeper     *lease.Keeper
	health     [slots]*retry.Health
	clock      Clock        // of the server; a cluster has many
	nodes      sync.Map     // of a cluster: address -> *clock
	watching   atomic.Bool  // the clock is asked for now and then
	setting    atomic.Int32 // how often holds are to be renewed because a clock was set: 2 is once more
	Began      time.Time

	Closing  context.Context // ends when nothing may be acquired any more; its cause is ErrClosed
	refuse   context.CancelCauseFunc
	Stopped  context.Context // ends when nothing is sent any more
	stop     context.CancelFunc
	shutdown sync.Once
	patient  context.Context // ends when Shutdown waits no longer
	hurry    context.CancelFunc
	Late     late

	registry registry

	mu        sync.Mutex
	running   sync.WaitGroup // of Go; added to under mu, not after isStopped
	isStopped bool
	places    map[address]entry
	floors    floors
	pings     map[uint64]chan struct{}
	hints     hints
	Teller    teller
}

// slots is how finely a cluster client tells which part of the cluster is away. Others use one.
const slots = 64

func (c *Client) newHealth() *retry.Health {
	return &retry.Health{
		Context: c.Stopped,
		Go:      c.Go,
		Down:    c.down,
		Lasting: func() {
			if !c.Sharded { // there, other nodes may be well; a grant that reaches nobody costs the short lease
				c.Hub.Suspend()
			}
		},
		Patience: c.Options.Lease / 3,
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
	if hook := c.Options.Observer.Subscribed; hook != nil {
		c.Teller.Tell(hook)
	}
	c.Keeper.RenewAll()
	if c.Sharded {
		c.Go(c.askNodes)
		return
	}
	sent := time.Now()
	if now, err := c.Conn.Time(context.Background(), nil); err == nil { // it may be another server; else a reply will tell
		c.ClockRead(&c.clock, now, sent)
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
	if !c.IDs.made(m) {
		return // it was not written by whoever reads what we write
	}
	if m.Kind == lua.Ping {
		c.ponged(m.Number)
		return
	}
	t := c.Tenure(m.Number)
	switch {
	case t != nil && t.Target().Keys.Name() == m.Name:
		t.Hear(m)
	case m.Kind == lua.Grant:
		c.Go(func() { c.RefuseGrant(m) })
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
func (c *Client) RefuseGrant(m lua.Message) {
	keys, err := lua.NewKeys(m.Family, m.Name, c.Sharded)
	if err == nil {
		d := lua.Departure{Owner: c.IDs.ID(m.Number)}
		_, err = c.Conn.Leave(context.Background(), keys, []lua.Departure{d}, c.floor(m.Family, m.Name))
	}
	if err != nil {
		c.Options.Logger.Warn("latchkey: a grant for nobody was not released; its lease runs out", "name", m.Name, "error", err)
	}
}
