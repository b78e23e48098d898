package barrier

import (
	"context"
	"sync"

	"github.com/latchkey-go/latchkey/internal/retry"
)

// settling counts the arrivals of a client that are being settled in the background. Their parties have
// left, but Redis may still count them.
type settling struct {
	mu       sync.Mutex
	arrivals retry.Tally
}

func (s *settling) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals.Add(n)
}

// wait waits until there are none, or returns the cause when ctx ends.
func (s *settling) wait(ctx context.Context) error {
	s.mu.Lock()
	none := s.arrivals.None()
	s.mu.Unlock()
	return retry.Await(ctx, none)
}
