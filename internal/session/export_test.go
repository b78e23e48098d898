package session

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
)

// SetClock makes a client believe that the server's clock is off by so much.
func SetClock(c *Client, off time.Duration) {
	c.clock.Record(time.Now().Add(off).UnixMicro(), time.Now())
}

// ReadRoughly is a reading that took so long that it tells little.
func ReadRoughly(c *Client) {
	now := time.Now()
	c.clock.Record(c.clock.At(now)-50_000, now.Add(-120*time.Millisecond))
}

// Reckons reports whether a client can reckon the server's clock.
func Reckons(c *Client) bool { return c.clock.Reckon() != 0 }

// KnowsClock reports whether a reading has told the server's clock.
func KnowsClock(c *Client) bool { return c.clock.Latest(time.Now()) != 0 }

// NodesTold returns of how many nodes of a cluster a client knows the clock.
func NodesTold(c *Client) (n int) {
	c.nodeClocks.Range(func(_, k any) bool {
		if k.(*clock.Clock).Latest(time.Now()) != 0 {
			n++
		}
		return true
	})
	return n
}

// Reading is what the clock of a name's server showed at most when the client was made, as its last reading
// says. Of a name that something is held of.
func Reading(c *Client, name string) time.Duration {
	for _, tenure := range c.tenures() {
		if t := tenure.Target(); t.Name() == name {
			return time.Duration(t.ServerClock.Latest(c.Began)) * time.Microsecond
		}
	}
	panic("nobody holds " + name)
}

// TargetsInUse is how many names are in use.
func TargetsInUse(c *Client) int { return len(inUse[any](c)) }

// MaxRefusals bounds what [PendingRefusals] returns.
const MaxRefusals = maxRefusals

// PendingRefusals is about how many bytes of grants to tenures that are over are still to be given back.
func PendingRefusals(c *Client) int {
	c.refusals.mu.Lock()
	defer c.refusals.mu.Unlock()
	return c.refusals.size
}
