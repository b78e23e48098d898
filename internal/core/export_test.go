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
