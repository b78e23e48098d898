package session

import (
	"context"
	"regexp"
)

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
