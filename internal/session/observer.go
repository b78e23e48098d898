package session

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// Kind is documented by the root package, as are [Event], [Outage] and [Observer].
type Kind string

// Event is what a hook gets.
type Event struct {
	Kind         Kind
	Name, Prefix string
	Context      context.Context
	Token        int64
	Permits      int
	Waited, Held time.Duration
	Err          error
	Contended    bool
}

// Outage is a time without answers of Redis.
type Outage struct {
	Addresses []string
	Began     time.Time
	Away      time.Duration
	Err       error
}

// Observer is a set of hooks. The client does not call a nil hook.
type Observer struct {
	Waiting, Queued, Acquired, Failed, Released, Lost, Passed func(Event)
	Subscribed                                                func()
	Down, Up                                                  func(Outage)
}

// WantsWaits reports whether a hook wants to know which calls wait for others.
func (o *Observer) WantsWaits() bool { return o.Waiting != nil || o.Acquired != nil || o.Failed != nil }

// NewEvent returns an event of the primitive with that name, without the fields of the particular hook. The caller
// looks first whether the hook is set: so an event costs nothing without a hook.
func (t *Target) NewEvent(ctx context.Context, name string) Event {
	return Event{Kind: Kind(t.Keys.Family().String()), Name: name, Prefix: t.Client.Options.Prefix, Context: ctx}
}

// outage adds to an outage the servers that the client knows.
func (c *Client) outage(o retry.Outage) Outage {
	return Outage{Addresses: c.addresses(), Began: o.Began, Away: o.Away, Err: o.Err}
}

func (c *Client) addresses() []string { return slices.Sorted(maps.Keys(c.Conn.Client.Nodes())) }

// down runs when an outage has begun.
func (c *Client) down(outage retry.Outage) {
	o := c.outage(outage)
	c.Options.Logger.Warn("latchkey: redis is away", "addresses", o.Addresses, "error", o.Err)
	if hook := c.Options.Observer.Down; hook != nil {
		c.Notifier.Notify(func() { hook(o) })
	}
}

// up runs when Redis answers again, before the client sends the commands that waited for Redis. It sends the renewals
// first: leases may be about to end.
func (c *Client) up(outage retry.Outage) {
	o := c.outage(outage)
	c.arrived()
	c.Hub.Resume()
	c.Keeper.RenewAll()
	c.Go(c.recheckAll)
	c.Options.Logger.Info("latchkey: redis is back", "addresses", o.Addresses, "away", o.Away)
	if hook := c.Options.Observer.Up; hook != nil {
		c.Notifier.Notify(func() { hook(o) })
	}
}

// NotConnected takes each new reason why a dial failed before there was a connection. began is when the dial began.
// The first call begins an outage. NotConnected is not for a client of a cluster.
func (c *Client) NotConnected(err error, began time.Time) {
	if h := c.health[0]; h.Because(err) {
		c.Options.Logger.Warn("latchkey: still no connection, for another reason", "addresses", c.addresses(), "error", err)
	} else {
		h.Failed(err, began, c.briefly(c.probe))
	}
}
