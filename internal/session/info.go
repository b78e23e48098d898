package session

import (
	"context"
	"regexp"

	"github.com/redis/rueidis"
)

var evictionPolicy = regexp.MustCompile(`(?m)^maxmemory_policy:([\w-]+)`)

// warnOfEviction logs a warning if the server may drop keys for lack of memory: nearly all of our keys may be among
// them. A client asks once in its life; in a cluster it asks one node. If the user may not ask, warnOfEviction logs
// nothing.
func (c *Client) warnOfEviction() {
	if c.evictionAsked.Swap(true) {
		return
	}
	info, err := c.askAside(context.Background(), "INFO", "memory")
	if err != nil {
		return
	}
	if found := evictionPolicy.FindStringSubmatch(info); found != nil && found[1] != "noeviction" {
		c.Options.Logger.Warn(
			"latchkey: redis may evict the keys of locks, see Eviction in docs/operations.md: set maxmemory-policy noeviction",
			"addresses", c.addresses(), "maxmemory-policy", found[1])
	}
}

// asker returns a function that sends a command to some server of a client, once.
func asker(client rueidis.Client) func(context.Context, ...string) (string, error) {
	return func(ctx context.Context, words ...string) (string, error) {
		return client.Do(ctx, client.B().Arbitrary(words...).Build()).ToString()
	}
}

var runID = regexp.MustCompile(`(?m)^run_id:(\w+)`)

// RunID returns the id that tells the process of the server from all others. It returns an empty text for a cluster,
// and if the server does not say its id.
func (c *Client) RunID(ctx context.Context) string {
	if c.Sharded {
		return ""
	}
	info, err := c.Conn.Client.Do(WithoutDeadline(ctx), c.Conn.Client.B().Info().Section("server").Build()).ToString()
	found := runID.FindStringSubmatch(info)
	if err != nil || found == nil {
		return ""
	}
	return found[1]
}
