package core

import (
	"testing"
	"time"
)

// RedeclareAfter sets how long Redis is believed to know a capacity, until the test ends.
func RedeclareAfter(t *testing.T, d time.Duration) {
	before := redeclare
	redeclare = d
	t.Cleanup(func() { redeclare = before })
}

// SetClock makes a client believe that the server's clock is off by so much.
func SetClock(c *Client, off time.Duration) {
	c.clock.told(time.Now().Add(off).UnixMicro(), time.Now())
}

// NodesTold returns of how many nodes of a cluster a client knows the clock.
func NodesTold(c *Client) (n int) {
	c.nodes.Range(func(_, k any) bool {
		if k.(*clock).most.Load() != 0 {
			n++
		}
		return true
	})
	return n
}

// Reading is by how much the clock of a lock's server is ahead of our monotonic one, as its last reading says.
func Reading(l *Lock) time.Duration {
	return time.Duration(l.p.resource.clock.least.Load()) * time.Microsecond
}

// Places is how many names of what grants are in use.
func Places(c *Client) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.places {
		if p.value() != nil {
			n++
		}
	}
	return n
}

// InboxOf is the channel on which a client hears.
func InboxOf(c *Client) string { return c.inbox.Name() }
