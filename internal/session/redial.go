package session

import (
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A server's name may lead to another server while connections to the old server go on: an endpoint of a cloud, a
// service of Kubernetes, a proxy. The old primary is a replica by then, and refuses all writes, on each connection
// that it still has. So the client gives its connections up, and dials the name again. A refused command has done
// nothing, and the client repeats it, as after any other loss of a connection. In a cluster, rueidis follows what the
// nodes say.

// redialPause is the least time between two redials: a redial does not help if the name leads to the same server.
const redialPause = time.Second

// redials are what a client knows of its redials. The zero value is ready.
type redials struct {
	mu   sync.Mutex
	last time.Time
	was  string // where the connections led that the client gave up; empty: it gave up none since Redis was up
}

// elsewhere takes the error of a probe which says that the server takes no writes.
func (c *Client) elsewhere(err error) {
	switch {
	case c.Sharded:
		return
	case len(c.connections) == 0:
		c.health[0].Because(fmt.Errorf("%w (its rueidis client is not ours: only its owner can dial again)", err))
		return
	}
	c.redials.mu.Lock()
	due := time.Since(c.redials.last) >= redialPause
	if due {
		c.redials.last = time.Now()
		if c.redials.was == "" {
			c.redials.was = c.connections[0].At()
		}
	}
	c.redials.mu.Unlock()
	if due {
		for _, owned := range c.connections {
			owned.Cut() // the inbox as well: Redis publishes messages on the new server
		}
	}
}

// arrived logs where the name leads, if the client gave up connections and now reaches another server.
func (c *Client) arrived() {
	c.redials.mu.Lock()
	was := c.redials.was
	c.redials.was = ""
	c.redials.mu.Unlock()
	if was == "" || c.Conn.Client.Mode() != rueidis.ClientModeStandalone { // rueidis asks Sentinel for the primary
		return
	}
	if is := c.connections[0].At(); is != was {
		c.Options.Logger.Warn("latchkey: the server took no writes, and its name leads to another one now", "addresses", c.addresses(), "was", was, "is", is)
	}
}
