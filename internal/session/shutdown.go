package session

import (
	"context"
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
			t.Interrupt()
		}
		limited, cancel := context.WithTimeout(leaving, c.Options.ReleaseTimeout)
		defer cancel()
		var resigned sync.WaitGroup
		resigned.Go(func() { c.resign(limited) })
		_ = c.none(limited, &c.registry.waiters) // entries that stay are dropped by the next grant: the inbox goes with us
		resigned.Wait()
		if c.none(c.patient, &c.registry.holds) != nil {
			err = c.stillHeld(patient)
		}
		c.finish()
	})
	return err
}

// resign leaves all that a closing client must leave, at the same time.
func (c *Client) resign(ctx context.Context) {
	var left sync.WaitGroup
	for _, m := range placesOf[Member](c) {
		left.Go(func() { m.Resign(ctx) })
	}
	left.Wait()
}

// farewell is how long the last goroutines of a client are waited for, and once more after their connections
// were ended.
const Farewell = 250 * time.Millisecond

// finish ends everything, within a second also when Redis is silent. What is still held is told so, and keeps
// its lease in Redis until it is unlocked: its code may still run.
func (c *Client) finish() {
	for _, t := range c.all() {
		c.Late.expect(t)
		if !c.Keeper.Lose(t.Item(), ErrClosed) { // it is being released, or was lost
			c.Late.Over(t)
		}
	}
	deaf := make(chan struct{}) // closed once nothing can be granted to us any more
	go func() {
		c.Hub.Close()
		close(deaf)
	}()
	Within(deaf, Farewell)
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
	if !Within(idle, Farewell) {
		for _, o := range c.owned {
			o.Cut()
		}
		Within(idle, Farewell) // connections of the caller's are not ours to end: what waits for them ends with their patience
	}
	c.Late.begin(c.closeOwned)
}

func Within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
