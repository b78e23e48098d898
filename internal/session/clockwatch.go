package session

import (
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// How a jump of a server's clock is noticed, and what follows (rule 24).
//
// Redis ends leases by its wall clock. When that is set forward, leases end early, and another client may
// hold at once. When it is set back, leases stay. So every reply that tells the clock is compared with the
// one before. A fresh token is a reading as a rule. When one does not fit, the clock is read before the
// waiter that was granted it goes on. And a client that holds something reads the clock now and then, when
// nothing else has told it.
//
// In a cluster the client does not know which node has a name. So each name has a clock of its own. Each node
// has one as well, for the regular reading. A jump of a node's clock ends no trust by itself, but has all
// holds renewed, as every jump does. The renewals then tell the clocks of the names.

// watchInterval is how long a client that holds something goes without a reading of the clock.
const watchInterval = 2 * time.Second

// RecordClock takes a reading of a clock that has just arrived, in microseconds since 1970, and when the
// question was sent. If it shows a jump forward, holds end whose leases may be over. After any jump all holds
// are renewed and all waiters ask, in the background.
func (c *Client) RecordClock(k *clock.Clock, reading int64, sent time.Time) {
	j := k.Record(reading, sent)
	if j.Least == 0 {
		return
	}
	by := time.Duration(j.Least) * time.Microsecond
	if by > 0 {
		most := time.Duration(j.Most) * time.Microsecond
		c.Keeper.Jumped(most, sent, func(i *lease.Item) bool { return tenureOf(i).Target().ServerClock == k })
	}
	if c.jumpRounds.Swap(2) == 0 { // else a round of renewals is under way, and another follows it
		c.Options.Logger.Warn("latchkey: the server's clock was set", "by", by)
		c.Go(c.recoverFromJump)
	}
}

// recoverFromJump renews all holds and tells all waiters, after a clock was set. The clocks of a cluster's
// names show the same jump one after the other, as the renewals are answered. One more round serves all that
// came during the last one.
func (c *Client) recoverFromJump() {
	for {
		c.jumpRounds.Store(1)
		c.Keeper.RenewAll()
		for _, q := range c.queues() {
			q.ClockSet()
		}
		if c.jumpRounds.CompareAndSwap(1, 0) || retry.Sleep(c.Stopped, clock.HintPause) != nil {
			return
		}
	}
}

// CheckClock checks what is known of the clock against the token of a grant. again says that the grant was
// asked about again, and may have been made some time ago. When the token does not fit, CheckClock reads the
// clock, and returns once that is answered or ctx has ended: a jump from before the grant must not look like
// one after it. When the token does not tell the clock, CheckClock reads it in the background: else each
// acquire would ask for the time.
func (t *Target) CheckClock(ctx context.Context, token int64, sent time.Time, again bool) {
	fits, tells := again && t.ServerClock.FitsMessage(token), true
	if !again {
		fits, tells = t.ServerClock.FitsToken(token, sent)
	}
	if fits && tells {
		return
	}
	read := t.ReadClock()
	if fits {
		return
	}
	select {
	case <-read:
	case <-ctx.Done():
	case <-t.Client.Stopped.Done():
	}
}

// ReadClock asks the server of the name for its clock. It returns a channel that is closed when that is over,
// also without an answer. Too soon after another ReadClock of the name it asks for nothing.
func (t *Target) ReadClock() <-chan struct{} {
	c := t.Client
	done := t.ServerClock.Refresh(t.hinted, c.Go, func() { c.readClock(t.ServerClock, c.Conn, t.Keys) })
	if done == nil {
		return alreadyDone
	}
	return done
}

// alreadyDone is closed.
var alreadyDone = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// readClock asks for a clock once, for as long as a command may take. Without an answer another reply tells
// it.
func (c *Client) readClock(k *clock.Clock, conn lua.Conn, keys *lua.Keys) {
	ctx, cancel := context.WithTimeout(c.Stopped, c.Options.CommandTimeout)
	defer cancel()
	sent := time.Now()
	if now, err := conn.Time(WithoutDeadline(ctx), keys); err == nil {
		c.RecordClock(k, now, sent)
	}
}

// readNodeClocks asks each node of a cluster for its clock.
func (c *Client) readNodeClocks() {
	for addr, node := range c.Conn.Client.Nodes() {
		k, _ := c.nodeClocks.LoadOrStore(addr, &clock.Clock{})
		c.Go(func() { c.readClock(k.(*clock.Clock), lua.Conn{Client: node}, nil) })
	}
}

// WatchClock has the clock read now and then, until nothing is held any more. It is called whenever something
// is held.
func (c *Client) WatchClock() {
	if c.watching.Load() || !c.watching.CompareAndSwap(false, true) {
		return
	}
	if c.Sharded {
		c.Go(c.readNodeClocks) // what they say later is compared with that
	}
	c.watchLater()
}

func (c *Client) watchLater() {
	d := watchInterval
	if !c.Sharded {
		d = max(watchInterval-c.clock.Age(), watchInterval/20) // most of what is held is not held so long
	}
	time.AfterFunc(d, c.watchOnce)
}

func (c *Client) watchOnce() {
	switch {
	case c.Stopped.Err() != nil || c.Keeper.Empty():
		c.watching.Store(false)
		// What was held since the check above may have found watching set, and begun no watch.
		if c.Stopped.Err() == nil && !c.Keeper.Empty() {
			c.WatchClock()
		}
		return
	case slices.ContainsFunc(c.health[:], func(h *retry.Health) bool { return h.Away() != nil }):
		// One probe is enough for all, and what follows it tells the clock.
	case c.Sharded:
		c.Go(c.readNodeClocks)
	case c.clock.Age() >= watchInterval:
		c.clock.Refresh(nil, c.Go, func() { c.readClock(&c.clock, c.Conn, nil) })
	}
	c.watchLater()
}
