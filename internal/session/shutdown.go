package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Shutdown is documented by the root package. If ctx has ended, Shutdown is Close.
func (c *Client) Shutdown(ctx context.Context) error {
	if ctx.Err() != nil {
		return c.shutDown(context.WithoutCancel(ctx), ctx)
	}
	return c.shutDown(ctx, ctx)
}

// closeNow ends the wait of a Close before it begins.
var closeNow = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(fail.ErrClosed)
	return ctx
}()

// Close is documented by the root package.
func (c *Client) Close() error { return c.shutDown(context.Background(), closeNow) }

// shutDown ends the client. It waits until the waiters have left the queues: until leaving ends, or for the release
// timeout. It waits until the holds have ended: until patient ends. The first call does this. Each later call waits
// for the first call, and cuts the first call's wait for the holds short when its own patient ends.
func (c *Client) shutDown(leaving, patient context.Context) (err error) {
	defer context.AfterFunc(patient, c.endShutdownWait)()
	if !c.isShutDown.CompareAndSwap(false, true) {
		<-c.shutDownOver // no mutex: while a goroutine waits for a mutex, no time passes in a bubble of synctest
		return nil
	}
	defer close(c.shutDownOver)
	c.beginClosing(fail.ErrClosed)
	for _, q := range c.queues() { // a caller that asks for a queue from now on finds that the client is closing
		q.CloseLines(fail.ErrClosed)
	}
	c.leave(leaving)
	if c.waitForNone(c.shutdownWait, &c.registry.holds) != nil {
		err = c.stillHeld(patient)
	}
	c.finish()
	return err
}

// leave ends all waits and memberships, and waits until they have left Redis, for the command timeout at most. The
// next grant drops entries that stay, because the inbox goes with the client.
func (c *Client) leave(ctx context.Context) {
	for _, t := range c.tenures() {
		t.Interrupt()
	}
	ctx, cancel := context.WithTimeout(ctx, c.Options.CommandTimeout)
	defer cancel()
	var left sync.WaitGroup
	for _, m := range inUse[Member](c) {
		left.Go(func() { m.Resign(ctx) })
	}
	_ = c.waitForNone(ctx, &c.registry.waiters)
	left.Wait()
}

// CloseGrace is how long a closing client waits, each time, for three things: first the releases that have begun, and
// the end of the subscriptions; then its last goroutines; then these goroutines once more, after it has closed their
// connections.
const CloseGrace = 250 * time.Millisecond

// finish ends the client. It takes less than a second, also if Redis is silent. A tenure that is still held is lost
// with ErrClosed. finish does not release this tenure, because the code that the tenure guards may still run. The
// lease stays in Redis until the caller unlocks, or until the lease runs out.
func (c *Client) finish() {
	c.loseAll()
	unsubscribed := make(chan struct{}) // closed once Redis can grant nothing to this client any more
	go func() {
		c.Hub.Close()
		close(unsubscribed)
	}()
	grace, cancel := context.WithTimeout(context.Background(), CloseGrace)
	defer cancel()
	_ = c.waitForNone(grace, &c.registry.holds) // the last holds are being released: let the client send the releases
	_ = retry.Await(grace, unsubscribed)
	c.Records.End(grace)
	c.stop()
	c.mu.Lock()
	c.isStopped = true
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		<-unsubscribed
		c.running.Wait()
		close(idle)
	}()
	if !ClosedWithin(idle, CloseGrace) {
		for _, owned := range c.connections {
			owned.Cut()
		}
		// The connections of the user's rueidis client are not ours to close. A goroutine that waits for them ends
		// when rueidis gives them up.
		ClosedWithin(idle, CloseGrace)
	}
	c.HeldAtClose.closeAfter(c.closeOwned)
}

// loseAll ends all tenures that are still held.
func (c *Client) loseAll() {
	for _, t := range c.tenures() {
		c.HeldAtClose.add(t)
		if !c.Keeper.Lose(t.Item(), fail.ErrClosed) { // the tenure is being released, or was lost
			c.HeldAtClose.Remove(t)
		}
	}
}

// ClosedWithin waits until done is closed, for d at most, and reports whether done was closed.
func ClosedWithin(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// mostNamed is how many names an error lists.
const mostNamed = 10

var errCutShort = errors.New("another call of Shutdown or Close ended the wait")

// stillHeld returns the error of a Shutdown that ended before everything was unlocked. The error names what is held.
func (c *Client) stillHeld(ctx context.Context) error {
	why := errCutShort
	switch {
	case ctx == closeNow:
		why = fail.ErrClosed
	case ctx.Err() != nil:
		why = fail.ContextError(ctx)
	}
	names := c.heldNames()
	if len(names) == 0 {
		return fail.Wrap("", fmt.Errorf("locks are still held: %w", why)) // the last hold was unlocked just now
	}
	return fail.Wrap("", fmt.Errorf("locks are still held: %s: %w", list(names), why))
}

// heldNames returns the names of what is held, sorted, each once.
func (c *Client) heldNames() []string {
	var names []string
	for _, t := range c.tenures() {
		if name := t.HeldName(); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// list quotes the first ten names, and counts the rest.
func list(names []string) string {
	var b strings.Builder
	for i, name := range names[:min(len(names), mostNamed)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(lua.Brief(name)))
	}
	if more := len(names) - mostNamed; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}
