package session

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// New returns a client that has begun to subscribe to its inbox, if o wants an inbox. o must be valid, and id is of
// [identity.NewID]. If our client owns the two rueidis clients, connections are the connections of these two, the
// connections of subscriptions last. closeOwned closes what our client owns.
func New(id string, commands, subscriptions rueidis.Client, o Options, connections []*Connections, closeOwned func()) *Client {
	c := &Client{
		IDs:         newIDs(id),
		Began:       time.Now(),
		Conn:        lua.Conn{Client: commands, Declares: new(atomic.Bool)},
		closeOwned:  closeOwned,
		connections: connections,
		Sharded:     commands.Mode() == rueidis.ClientModeCluster,
		targets:     map[targetKey]entry{},
		pings:       map[uint64]chan struct{}{},

		shutDownOver: make(chan struct{}),
	}
	c.Conn.Declares.Store(o.DeclaredKeys)
	c.Notifier.start = c.Go
	o.Logger = slog.New(notifyingHandler{o.Logger.Handler(), &c.Notifier})
	c.Options = o
	c.Closing, c.beginClosing = context.WithCancelCause(context.Background())
	c.shutdownWait, c.endShutdownWait = context.WithCancel(context.Background())
	c.Stopped, c.stop = context.WithCancel(context.Background())
	c.registry.begins = !o.Untold
	c.Records = c.newRecords()
	c.Keeper = lease.NewKeeper(c.Stopped, renewer{c})
	inboxes, others := c.sources(subscriptions)
	c.Hub = hub.New(inboxes, others, c.deliver, o.Logger)
	for i := range c.health {
		c.health[i] = c.newHealth()
	}
	if o.WithoutPubSub {
		c.askAside = asker(commands)
		c.Go(c.warnOfEviction)
	} else {
		c.Inbox = c.Hub.Open(c.inboxOf(c.IDs.Client), c.inboxConfirmed)
	}
	return c
}

// sources returns where the client subscribes to its inboxes, and where it subscribes to all other channels. Without
// a cluster each of the two sources has a connection of its own. So the client does not interrupt the inbox when it
// gives up channels without waiters.
func (c *Client) sources(subscriptions rueidis.Client) (inboxes, others hub.Source) {
	if !c.Sharded {
		inbox := &hub.Dedicated{Client: subscriptions}
		c.askAside = inbox.Ask
		return inbox, &hub.Dedicated{Client: subscriptions}
	}
	c.askAside = asker(subscriptions)
	s := &hub.Sharded{Client: subscriptions}
	if n := len(c.connections); n > 0 {
		s.Close = c.connections[n-1].Cut
	}
	return s, s
}

// Handle is behind latchkey.Client: it holds a client that code outside of this module cannot reach. The client has
// exported fields, for the packages inside.
type Handle struct{ client *Client }

// Handle returns the handle of c; nil if c is nil.
func (c *Client) Handle() *Handle {
	if c == nil {
		return nil
	}
	return &Handle{c}
}

// Client returns the client of h; nil if h is nil.
func (h *Handle) Client() *Client {
	if h == nil {
		return nil
	}
	return h.client
}
