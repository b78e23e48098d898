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

// How the client notices a jump of a server's clock, and what follows (rule 24).
//
// Redis ends leases by its wall clock. If that clock is set forward, leases end early, and another client may hold at
// once. If that clock is set back, leases stay. So the client compares every reply that tells the clock with the
// reply before. A fresh token is a reading of the clock as a rule. If a token does not fit, the client reads the
// clock before the waiter with this token goes on. And while a client holds something, it reads the clock now and
// then, if no reply has told the clock.
//
// In a cluster the client does not know which node has a name. So each name has a clock of its own. Each node has a
// clock as well, for the regular reading. A jump of a node's clock ends no trust by itself. But the client then
// renews all holds, as after every jump, and the renewals tell the clocks of the names.

// watchInterval is how long a client that holds something goes without a reading of the clock.
const watchInterval = 2 * time.Second

// RecordClock takes a reading of the clock k that has just arrived, in microseconds since 1970. sent is when the
// client sent the question. If the reading shows a jump forward, RecordClock ends the holds whose leases may be over.
// After any jump the client renews all holds, and the waiters ask, in the background.
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
	if c.jumpRounds.Swap(2) == 0 { // otherwise a round of renewals is under way, and another round follows it
		c.Options.Logger.Warn("latchkey: the server's clock was set", "by", by)
		c.Go(c.recoverFromJump)
	}
}

// recoverFromJump renews all holds and tells all queues, after a clock was set. The clocks of a cluster's names show
// the same jump one after the other, as Redis answers the renewals. One more round serves all jumps that came during
// the last round.
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

// CheckClock checks the token of a grant against what the client knows of the clock. again says that the client asked
// about the grant again: Redis may have made this grant some time ago. If the token does not fit, CheckClock reads
// the clock, and returns once Redis has answered or ctx has ended: a jump from before the grant must not look like a
// jump after the grant. If the token fits, but does not tell the clock, CheckClock reads the clock in the background:
// otherwise each acquire would ask for the time.
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

// ReadClock asks the server of the name for its clock. It returns a channel that is closed when the question is over,
// also without an answer. Too soon after another ReadClock of the name, ReadClock asks nothing.
func (t *Target) ReadClock() <-chan struct{} {
	c := t.Client
	done := t.ServerClock.Refresh(t.hinted, c.Go, func() { c.readClock(t.ServerClock, c.Conn, t.Keys) })
	if done == nil {
		return alreadyDone
	}
	return done
}

// alreadyDone is a closed channel.
var alreadyDone = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// readClock asks for a clock once, for as long as a command may take. If no answer comes, another reply tells the
// clock.
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

// WatchClock reads the clock now and then, until the client holds nothing any more. An engine calls WatchClock for
// each new hold.
func (c *Client) WatchClock() {
	if c.watching.Load() || !c.watching.CompareAndSwap(false, true) {
		return
	}
	if c.Sharded {
		c.Go(c.readNodeClocks) // WatchClock compares later readings with these
	}
	c.watchLater()
}

func (c *Client) watchLater() {
	d := watchInterval
	if !c.Sharded {
		d = max(watchInterval-c.clock.Age(), watchInterval/20) // most holds end before that
	}
	time.AfterFunc(d, c.watchOnce)
}

func (c *Client) watchOnce() {
	switch {
	case c.Stopped.Err() != nil || c.Keeper.Empty():
		c.watching.Store(false)
		// A hold may have come after the check above, and before the Store. It saw watching as true, and began no watch.
		if c.Stopped.Err() == nil && !c.Keeper.Empty() {
			c.WatchClock()
		}
		return
	case slices.ContainsFunc(c.health[:], func(h *retry.Health) bool { return h.Away() != nil }):
		// One probe is enough for all names, and the replies that follow it tell the clock.
	case c.Sharded:
		c.Go(c.readNodeClocks)
	case c.clock.Age() >= watchInterval:
		c.clock.Refresh(nil, c.Go, func() { c.readClock(&c.clock, c.Conn, nil) })
	}
	c.watchLater()
}
