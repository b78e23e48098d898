package session

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// Primitive is documented by the root package as Kind, as are Event, Outage and Observer.
type Kind string

// Event is what a hook is told.
type Event struct {
	Kind         Kind
	Name, Prefix string
	Context      context.Context
	Token        int64
	Permits      int
	Waited, Held time.Duration
	Err          error
}

// Outage is a time without answers of Redis.
type Outage struct {
	Addresses []string
	Began     time.Time
	Away      time.Duration
	Err       error
}

// Observer is a set of hooks.
type Observer struct {
	Queued, Acquired, Failed, Released, Lost, Passed func(Event)
	Subscribed                                       func()
	Down, Up                                         func(Outage)
}

// The hooks are called by what follows, which does nothing before it knows that there is one.

func (p *Target) NewEvent(ctx context.Context, name string) Event {
	return Event{Kind: Kind(p.Keys.Family().String()), Name: name, Prefix: p.Client.Options.Prefix, Context: ctx}
}

// outage adds to an outage where it is.
func (c *Client) outage(o retry.Outage) Outage {
	return Outage{Addresses: slices.Sorted(maps.Keys(c.Conn.Client.Nodes())), Began: o.Began, Away: o.Away, Err: o.Err}
}

// down and up are told of the ends of an outage.
func (c *Client) down(outage retry.Outage) {
	o := c.outage(outage)
	c.Options.Logger.Warn("latchkey: redis is away", "addresses", o.Addresses, "error", o.Err)
	if hook := c.Options.Observer.Down; hook != nil {
		c.Teller.Tell(func() { hook(o) })
	}
}

func (c *Client) up(outage retry.Outage) {
	o := c.outage(outage)
	c.Hub.Resume()
	c.Keeper.RenewAll()
	c.Go(c.recheckAll)
	c.Options.Logger.Info("latchkey: redis is back", "addresses", o.Addresses, "away", o.Away)
	if hook := c.Options.Observer.Up; hook != nil {
		c.Teller.Tell(func() { hook(o) })
	}
}
