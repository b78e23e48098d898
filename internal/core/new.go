package core

import (
	"context"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/redis/rueidis"
)

// newClient returns a client that subscribes already. owned are the connections of the two, if they are the
// client's: those of the subscriptions come last; end closes them and the clients.
func newClient(commands, subscriptions rueidis.Client, o ClientOptions, owned []*connections, end func()) *Client {
	c := &Client{
		ids:     newIDs(o.Prefix),
		began:   time.Now(),
		conn:    lua.Conn{Client: commands},
		close:   func() {},
		owned:   owned,
		sharded: commands.Mode() == rueidis.ClientModeCluster,
		places:  map[address]entry{},
		pings:   map[uint64]chan struct{}{},
	}
	c.teller.start = c.Go
	o.Logger = slog.New(deferring{o.Logger.Handler(), &c.teller})
	c.options = o
	c.closing, c.refuse = context.WithCancelCause(context.Background())
	c.patient, c.hurry = context.WithCancel(context.Background())
	c.stopped, c.stop = context.WithCancel(context.Background())
	c.keeper = lease.NewKeeper(c.stopped, renewer{c})
	inboxes, others := c.sources(subscriptions)
	c.hub = hub.New(inboxes, others, c.deliver, o.Logger)
	for i := range c.health {
		c.health[i] = c.newHealth()
	}
	inbox := lua.Inbox(c.ids.client)
	if c.sharded {
		inbox = lua.Inbox("{" + c.ids.client + "}")
	}
	c.inbox = c.hub.Open(inbox, c.confirmed)
	return c
}

// sources returns where the client subscribes: to its inboxes, and to all else. Without a cluster there is a
// connection for each of the two, so that giving up what nobody waits for any more does not interrupt the
// inbox.
func (c *Client) sources(subscriptions rueidis.Client) (inboxes, others hub.Source) {
	if !c.sharded {
		return &hub.Dedicated{Client: subscriptions}, &hub.Dedicated{Client: subscriptions}
	}
	s := &hub.Sharded{Client: subscriptions}
	if n := len(c.owned); n > 0 {
		s.Close = c.owned[n-1].cut
	}
	return s, s
}
