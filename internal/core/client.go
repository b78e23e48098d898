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

	mu        sync.Mutex
	running   sync.WaitGroup // of Go; added to under mu, not after isStopped
	isStopped bool
	tenures   map[uint64]*tenure // whatever Redis may know of: waiters, holds, and those that are leaving
	waiters   tally              // of tenures that are not held
	holds     tally              // of those that are
	resources registry[resource]
	circles   registry[circle]
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

// inUse returns the resources that are: all that anybody may wait in.
func (c *Client) inUse() []*resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*resource, 0, len(c.resources))
	for _, p := range c.resources {
		if r := p.Value(); r != nil {
			all = append(all, r)
		}
	}
	return all
}

func (c *Client) recheckAll() {
	var g errgroup.Group
	g.SetLimit(64)
	for _, r := range c.inUse() {
		g.Go(func() error { r.waiters.RecheckAll(); return nil })
	}
	_ = g.Wait() // what failed is told to the waiters
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
	t := c.tenure(m.Number)
	if t != nil && t.keys.Name() != m.Name {
		t = nil
	}
	switch m.Kind {
	case lua.Ping:
		c.ponged(m.Number)
	case lua.Grant:
		if t != nil && !t.clock.message(m.Now) {
			t.look()
		}
		if t == nil || !t.waiters.Granted(&t.waiter, m) {
			c.Go(func() { c.refuseGrant(t, m) })
		}
	case lua.Ask:
		if t != nil {
			c.Go(t.waiters.RecheckAll)
		}
	case lua.Forced:
		if t != nil {
			c.Go(func() { t.taken(m.Token, errForced) })
		}
	case lua.Want:
		if t != nil {
			t.want()
		}
	case lua.Ends:
		if t != nil {
			t.waiters.LeaseEnds(time.Duration(m.Lease) * time.Millisecond)
		}
	}
}

// tenure finds one by its number.
func (c *Client) tenure(n uint64) *tenure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tenures[n]
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

// refuseGrant releases what was granted to a tenure that is over (rule 3): a late copy of its acquire had queued again. When
// t is not nil it holds, or is about to, and has just learnt that what it was granted up to the message's token is gone.
func (c *Client) refuseGrant(t *tenure, m lua.Message) {
	if t != nil {
		t.taken(m.Token, lease.ErrGone)
	}
	keys, err := lua.NewKeys(m.Family, m.Name, c.sharded)
	if err == nil {
		d := lua.Departure{Owner: c.ids.id(m.Number)}
		_, err = c.conn.Leave(context.Background(), keys, []lua.Departure{d}, c.floor(m.Family, m.Name))
	}
	if err != nil {
		c.options.Logger.Warn("latchkey: a grant for nobody was not released; its lease runs out", "name", m.Name, "error", err)
	}
}
