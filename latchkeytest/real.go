package latchkeytest

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// removal is how long the keys of a test may take to be removed from a real server.
const removal = 10 * time.Second

// removeKeys removes what the test has left on a real server: the keys that have its prefix in their names.
func (s *Server) removeKeys() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), removal)
	defer cancel()
	option := s.option
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	if err != nil {
		s.t.Errorf("latchkeytest: keys with %q are left behind: %v", s.prefix, err)
		return
	}
	defer client.Close()
	for _, node := range client.Nodes() {
		if err := s.removeFrom(ctx, client, node); err != nil {
			s.t.Errorf("latchkeytest: keys with %q are left behind: %v", s.prefix, err)
		}
	}
}

// removeFrom removes those that one node has.
func (s *Server) removeFrom(ctx context.Context, client, node rueidis.Client) error {
	for cursor := uint64(0); ; {
		found, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match("*"+s.prefix+"*").Count(1000).Build()).AsScanEntry()
		if err != nil {
			return err
		}
		for _, key := range found.Elements {
			// By the client and not by the node: a replica lists keys, and cannot remove any.
			if err := client.Do(ctx, client.B().Del().Key(key).Build()).Error(); err != nil && !strings.HasPrefix(err.Error(), "MOVED") {
				return err
			}
		}
		if cursor = found.Cursor; cursor == 0 {
			return nil
		}
	}
}
