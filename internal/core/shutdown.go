package core

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Shutdown is documented by the root package. One whose context has ended is Close.
func (c *Client) Shutdown(ctx context.Context) error {
	if ctx.Err() != nil {
		return c.end(context.WithoutCancel(ctx), ctx)
	}
	return c.end(ctx, ctx)
}

// end ends the client. It waits for the queues to be left until leaving ends, or for the release timeout, and
// for what is held until patient ends. The first call does it; each later one waits for that, and cuts it
// short.
func (c *Client) end(leaving, patient context.Context) (err error) {
	defer context.AfterFunc(patient, c.hurry)()
	c.shutdown.Do(func() {
		c.refuse(ErrClosed)
		for _, t := range c.all() {
			t.waiters.Interrupt(&t.waiter)
		}
		limited, cancel := context.WithTimeout(leaving, c.options.ReleaseTimeout)
		defer cancel()
		var resigned sync.WaitGroup
		resigned.Go(func() { c.resign(limited) })
		_ = c.none(limited, &c.waiters) // entries that stay are dropped by the next grant: the inbox goes with us
		resigned.Wait()
		if c.none(c.patient, &c.holds) != nil {
			err = c.stillHeld(patient)
		}
		c.finish()
	})
	return err
}

// farewell is how long the last goroutines of a client are waited for, and once more after their connections
// were ended.
const farewell = 250 * time.Millisecond

// finish ends everything, within a second also when Redis is silent. What is still held is told so, and keeps
// its lease in Redis until it is unlocked: its code may still run.
func (c *Client) finish() {
	for _, t := range c.all() {
		c.late.expect(t)
		if !c.keeper.Lose(&t.item, ErrClosed) { // it is being released, or was lost
			c.late.over(t)
		}
	}
	deaf := make(chan struct{}) // closed once nothing can be granted to us any more
	go func() {
		c.hub.Close()
		close(deaf)
	}()
	within(deaf, farewell)
	c.stop()
	c.mu.Lock()
	c.isStopped = true
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		<-deaf
		c.running.Wait()
		close(idle)
	}()
	if !within(idle, farewell) {
		for _, o := range c.owned {
			o.cut()
		}
		within(idle, farewell) // connections of the caller's are not ours to end: what waits for them ends with their patience
	}
	c.late.begin(c.close)
}

func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

func (c *Client) all() []*tenure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.tenures))
}

// tally counts tenures, guarded by the client's mutex.
type tally struct {
	n    int
	zero chan struct{} // closed at 0; nil when nobody waits for that
}

func (t *tally) add(n int) {
	t.n += n
	if t.n == 0 && t.zero != nil {
		close(t.zero)
		t.zero = nil
	}
}

// none returns when the tally is 0, or with the cause when ctx ends.
func (c *Client) none(ctx context.Context, t *tally) error {
	c.mu.Lock()
	if t.n == 0 {
		c.mu.Unlock()
		return nil
	}
	if t.zero == nil {
		t.zero = make(chan struct{})
	}
	zero := t.zero
	c.mu.Unlock()
	select {
	case <-zero:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
