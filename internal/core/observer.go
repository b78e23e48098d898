package core

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// Primitive is documented by the root package as Kind, as are Event, Outage and Observer.
type Primitive string

// Event is what a hook is told.
type Event struct {
	Kind         Primitive
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

func (p *place) event(ctx context.Context, name string) Event {
	return Event{Kind: Primitive(p.keys.Family().String()), Name: name, Prefix: p.client.options.Prefix, Context: ctx}
}

// asks is told for whom the tenure competes from now on.
func (t *tenure) asks(caller context.Context) {
	if t.client.options.Observer.Queued != nil {
		t.mu.Lock()
		t.caller = caller
		t.mu.Unlock()
	}
}

func (r *resource) queued(w *wait.Waiter) {
	hook := r.client.options.Observer.Queued
	if hook == nil {
		return
	}
	t := r.tenure(w.Number)
	if t == nil { // it has been ended meanwhile
		return
	}
	t.mu.Lock()
	e := t.event(t.caller, t.name)
	e.Permits = max(t.permits, 0)
	t.mu.Unlock()
	contained(func() { hook(e) })
}

// acquired tells that the hold begins. If the hook panics, it is released: nobody has it.
func (h *Hold) acquired(began time.Time) {
	t := h.turn.tenure
	hook := t.client.options.Observer.Acquired
	if hook == nil {
		return
	}
	e := t.event(h.parent, t.name)
	e.Token, e.Permits, e.Waited = h.turn.token, t.Weight(), time.Since(began)
	whole(func() { hook(e) }, func() { t.Go(func() { _ = h.Unlock(context.Background()) }) })
}

func (o *Observer) released(u *turn) {
	if t := u.tenure; o.Released != nil {
		e := t.event(u.first.parent, t.name)
		e.Token, e.Permits, e.Held = u.token, t.Weight(), time.Since(u.moment)
		o.Released(e)
	}
}

// lost is told of a tenure whose last turn was u.
func (o *Observer) lost(u *turn, token int64, reason error) {
	if t := u.tenure; o.Lost != nil {
		e := t.event(u.first.parent, t.name)
		e.Token, e.Permits, e.Held, e.Err = token, t.Weight(), time.Since(u.moment), reason
		o.Lost(e)
	}
}

// attempted is told how an attempt ended that leaves no tenure.
func (p *primitive) attempted(ctx context.Context, permits int, began time.Time, err error) {
	r := p.resource
	hook := r.client.options.Observer.Acquired
	if err != nil {
		hook = r.client.options.Observer.Failed
	}
	if hook == nil {
		return
	}
	e := r.event(ctx, p.name)
	e.Permits, e.Waited, e.Err = max(permits, 0), time.Since(began), err
	hook(e)
}

// gaveBack is told of permits without an owner.
func (p *primitive) gaveBack(ctx context.Context, permits int) {
	if hook := p.resource.client.options.Observer.Released; hook != nil {
		e := p.resource.event(ctx, p.name)
		e.Permits = permits
		hook(e)
	}
}

// awaited is told how an Await ended.
func (r *group) awaited(ctx context.Context, name string, began time.Time, err error) {
	hook := r.client.options.Observer.Passed
	if err != nil {
		hook = r.client.options.Observer.Failed
	}
	if hook == nil {
		return
	}
	e := r.event(ctx, name)
	e.Waited, e.Err = time.Since(began), err
	hook(e)
}

// outage adds to an outage where it is.
func (c *Client) outage(o retry.Outage) Outage {
	return Outage{Addresses: slices.Sorted(maps.Keys(c.conn.Client.Nodes())), Began: o.Began, Away: o.Away, Err: o.Err}
}

// down and up are told of the ends of an outage.
func (c *Client) down(outage retry.Outage) {
	o := c.outage(outage)
	c.options.Logger.Warn("latchkey: redis is away", "addresses", o.Addresses, "error", o.Err)
	if hook := c.options.Observer.Down; hook != nil {
		c.teller.tell(func() { hook(o) })
	}
}

func (c *Client) up(outage retry.Outage) {
	o := c.outage(outage)
	c.hub.Resume()
	c.keeper.RenewAll()
	c.Go(c.recheckAll)
	c.options.Logger.Info("latchkey: redis is back", "addresses", o.Addresses, "away", o.Away)
	if hook := c.options.Observer.Up; hook != nil {
		c.teller.tell(func() { hook(o) })
	}
}
