package core

import (
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// How a jump of a server's clock is noticed, and what follows (rule 24).
//
// Redis ends leases by its wall clock. When somebody sets that forward, keys end early, and what they were
// may be held by somebody else at once; set back, they stay. Every reply that tells the clock is compared
// with the one before. Fresh tokens are readings as a rule, so one that does not fit has the clock asked for,
// before whoever was granted it goes on. And who holds something asks now and then, when nothing else has
// told.
//
// In a cluster it is not known which node has a name, so names have a clock each, and nodes have one for the
// regular question: what that shows ends the trust of nothing by itself, but has all holds renewed, as every
// jump does.

// vigil is how long a client that holds something goes without a reading of the clock.
const vigil = 2 * time.Second

// told takes a reading of a clock that has arrived, and when the question was sent.
func (c *Client) told(k *clock, reading int64, sent time.Time) {
	j := k.told(reading, sent)
	if j.least == 0 {
		return
	}
	by := time.Duration(j.least) * time.Microsecond
	if by > 0 {
		most := time.Duration(j.most) * time.Microsecond
		c.keeper.Jumped(most, sent, func(i *lease.Item) bool { return i.Owner.(*tenure).clock == k })
	}
	if c.setting.Swap(2) == 0 { // else it is told already: names of a cluster notice it one after the other
		c.options.Logger.Warn("latchkey: the server's clock was set", "by", by)
		c.Go(c.makeUp)
	}
}

// makeUp has Redis asked for all holds, and all waiters told, after a clock was set. The clocks of a
// cluster's names notice the same jump one after the other, as the renewals are answered: they are made up
// for together.
func (c *Client) makeUp() {
	for {
		c.setting.Store(1)
		c.keeper.RenewAll()
		for _, r := range c.inUse() {
			r.waiters.ClockSet()
		}
		if c.setting.CompareAndSwap(1, 0) || retry.Sleep(c.stopped, looks) != nil {
			return
		}
	}
}

// granted is told of the token of a grant, which was just made, or some time ago if it was asked about again.
// Where it does not fit the clock it returns once that was asked for, or ctx has ended: what is noticed now is
// not mistaken for a jump after the grant.
func (p *place) granted(ctx context.Context, token int64, sent time.Time, again bool) {
	if again && p.clock.message(token) || !again && p.clock.token(token, sent) {
		return
	}
	select {
	case <-p.look():
	case <-ctx.Done():
	case <-p.client.stopped.Done():
	}
}

// look asks the server of the place for its clock.
func (p *place) look() <-chan struct{} {
	done := p.clock.look(p.hinted, p.client.Go, func() { p.client.ask(p.clock, p.client.conn, p.keys) })
	if done == nil {
		return settled
	}
	return done
}

// settled is closed.
var settled = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// ask asks for a clock once, for as long as a command may take. Without an answer another reply will tell.
func (c *Client) ask(k *clock, conn lua.Conn, keys *lua.Keys) {
	ctx, cancel := context.WithTimeout(c.stopped, c.options.CommandTimeout)
	defer cancel()
	sent := time.Now()
	if now, err := conn.Time(withoutDeadline(ctx), keys); err == nil {
		c.told(k, now, sent)
	}
}

// watchClock is told that something is held: until nothing is, the clock is asked for now and then.
func (c *Client) watchClock() {
	if c.watching.Load() || !c.watching.CompareAndSwap(false, true) {
		return
	}
	if c.sharded {
		c.Go(c.askNodes) // what they say later is compared with that
	}
	c.lookLater()
}

func (c *Client) lookLater() {
	d := vigil
	if !c.sharded {
		d = max(vigil-c.clock.age(), vigil/20) // most of what is held is not held so long
	}
	time.AfterFunc(d, c.lookAround)
}

func (c *Client) lookAround() {
	switch {
	case c.stopped.Err() != nil || c.keeper.Empty():
		c.watching.Store(false)
		if c.stopped.Err() == nil && !c.keeper.Empty() { // since now: its call of watchClock may have found it set
			c.watchClock()
		}
		return
	case slices.ContainsFunc(c.health[:], func(h *retry.Health) bool { return h.Away() != nil }):
		// One probe is enough for all, and what follows it tells the clock.
	case c.sharded:
		c.Go(c.askNodes)
	case c.clock.age() >= vigil:
		c.clock.look(nil, c.Go, func() { c.ask(&c.clock, c.conn, nil) })
	}
	c.lookLater()
}

func (c *Client) askNodes() {
	for addr, node := range c.conn.Client.Nodes() {
		k, _ := c.nodes.LoadOrStore(addr, &clock{})
		c.Go(func() { c.ask(k.(*clock), lua.Conn{Client: node}, nil) })
	}
}
