package session

import (
	"context"
	"regexp"

	"github.com/redis/rueidis"
)

var evictionPolicy = regexp.MustCompile(`(?m)^maxmemory_policy:([\w-]+)`)

// warnOfEviction logs it when the server may drop keys for lack of memory: nearly all of ours may be among
// them. It asks once in the life of a client, of a cluster one node. Of a user who may not ask it logs
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

// asker returns what sends a command to some server of a client, once.
func asker(client rueidis.Client) func(context.Context, ...string) (string, error) {
	return func(ctx context.Context, words ...string) (string, error) {
		return client.Do(ctx, client.B().Arbitrary(words...).Build()).ToString()
	}
}

var runID = regexp.MustCompile(`(?m)^run_id:(\w+)`)

// RunID returns what tells the process of the server from all others. It returns an empty text for a cluster,
// and where the server does not say.
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
