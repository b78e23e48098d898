package session

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/hub"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// New returns a client that subscribes already. owned are the connections of the two, if they are the
// client's: those of the subscriptions come last; end closes them and the clients.
func New(commands, subscriptions rueidis.Client, o Options, owned []*Connections, end func()) *Client {
	c := &Client{
		IDs:        newIDs(o.Prefix),
		Began:      time.Now(),
		Conn:       lua.Conn{Client: commands},
		closeOwned: end,
		owned:      owned,
		Sharded:    commands.Mode() == rueidis.ClientModeCluster,
		places:     map[address]entry{},
		pings:      map[uint64]chan struct{}{},
	}
	c.Teller.start = c.Go
	o.Logger = slog.New(deferring{o.Logger.Handler(), &c.Teller})
	c.Options = o
	c.Closing, c.refuse = context.WithCancelCause(context.Background())
	c.patient, c.hurry = context.WithCancel(context.Background())
	c.Stopped, c.stop = context.WithCancel(context.Background())
	c.Keeper = lease.NewKeeper(c.Stopped, renewer{c})
	inboxes, others := c.sources(subscriptions)
	c.Hub = hub.New(inboxes, others, c.deliver, o.Logger)
	for i := range c.health {
		c.health[i] = c.newHealth()
	}
	inbox := lua.Inbox(c.IDs.Client)
	if c.Sharded {
		inbox = lua.Inbox("{" + c.IDs.Client + "}")
	}
	c.Inbox = c.Hub.Open(inbox, c.confirmed)
	return c
}

// sources returns where the client subscribes: to its inboxes, and to all else. Without a cluster there is a
// connection for each of the two, so that giving up what nobody waits for any more does not interrupt the
// inbox.
func (c *Client) sources(subscriptions rueidis.Client) (inboxes, others hub.Source) {
	if !c.Sharded {
		return &hub.Dedicated{Client: subscriptions}, &hub.Dedicated{Client: subscriptions}
	}
	s := &hub.Sharded{Client: subscriptions}
	if n := len(c.owned); n > 0 {
		s.Close = c.owned[n-1].Cut
	}
	return s, s
}
