package session

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
func (c *Client) ClockRead(k *Clock, reading int64, sent time.Time) {
	j := k.told(reading, sent)
	if j.least == 0 {
		return
	}
	by := time.Duration(j.least) * time.Microsecond
	if by > 0 {
		most := time.Duration(j.most) * time.Microsecond
		c.Keeper.Jumped(most, sent, func(i *lease.Item) bool { return i.Owner.(Tenure).Target().ServerClock == k })
	}
	if c.setting.Swap(2) == 0 { // else it is told already: names of a cluster notice it one after the other
		c.Options.Logger.Warn("latchkey: the server's clock was set", "by", by)
		c.Go(c.makeUp)
	}
}

// makeUp has Redis asked for all holds, and all waiters told, after a clock was set. The clocks of a
// cluster's names notice the same jump one after the other, as the renewals are answered: they are made up
// for together.
func (c *Client) makeUp() {
	for {
		c.setting.Store(1)
		c.Keeper.RenewAll()
		for _, r := range c.inUse() {
			r.ClockSet()
		}
		if c.setting.CompareAndSwap(1, 0) || retry.Sleep(c.Stopped, looks) != nil {
			return
		}
	}
}

// granted is told of the token of a grant, which was just made, or some time ago if it was asked about again.
// Where it does not fit the clock it returns once that was asked for, or ctx has ended: what is noticed now is
// not mistaken for a jump after the grant.
func (p *Target) CheckToken(ctx context.Context, token int64, sent time.Time, again bool) {
	if again && p.ServerClock.FitsMessage(token) || !again && p.ServerClock.FitsToken(token, sent) {
		return
	}
	select {
	case <-p.ReadClock():
	case <-ctx.Done():
	case <-p.Client.Stopped.Done():
	}
}

// look asks the server of the place for its clock.
func (p *Target) ReadClock() <-chan struct{} {
	done := p.ServerClock.look(p.hinted, p.Client.Go, func() { p.Client.ask(p.ServerClock, p.Client.Conn, p.Keys) })
	if done == nil {
		return settled
	}
	return done
}

// settled is closed.
var settled = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// ask asks for a clock once, for as long as a command may take. Without an answer another reply will tell.
func (c *Client) ask(k *Clock, conn lua.Conn, keys *lua.Keys) {
	ctx, cancel := context.WithTimeout(c.Stopped, c.Options.CommandTimeout)
	defer cancel()
	sent := time.Now()
	if now, err := conn.Time(WithoutDeadline(ctx), keys); err == nil {
		c.ClockRead(k, now, sent)
	}
}

// watchClock is told that something is held: until nothing is, the clock is asked for now and then.
func (c *Client) WatchClock() {
	if c.watching.Load() || !c.watching.CompareAndSwap(false, true) {
		return
	}
	if c.Sharded {
		c.Go(c.askNodes) // what they say later is compared with that
	}
	c.lookLater()
}

func (c *Client) lookLater() {
	d := vigil
	if !c.Sharded {
		d = max(vigil-c.clock.age(), vigil/20) // most of what is held is not held so long
	}
	time.AfterFunc(d, c.lookAround)
}

func (c *Client) lookAround() {
	switch {
	case c.Stopped.Err() != nil || c.Keeper.Empty():
		c.watching.Store(false)
		if c.Stopped.Err() == nil && !c.Keeper.Empty() { // since now: its call of watchClock may have found it set
			c.WatchClock()
		}
		return
	case slices.ContainsFunc(c.health[:], func(h *retry.Health) bool { return h.Away() != nil }):
		// One probe is enough for all, and what follows it tells the clock.
	case c.Sharded:
		c.Go(c.askNodes)
	case c.clock.age() >= vigil:
		c.clock.look(nil, c.Go, func() { c.ask(&c.clock, c.Conn, nil) })
	}
	c.lookLater()
}

func (c *Client) askNodes() {
	for addr, node := range c.Conn.Client.Nodes() {
		k, _ := c.nodes.LoadOrStore(addr, &Clock{})
		c.Go(func() { c.ask(k.(*Clock), lua.Conn{Client: node}, nil) })
	}
}
