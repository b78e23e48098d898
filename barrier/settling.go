package barrier

import (
	"context"
	"sync"
)

// settling counts the arrivals of a client that are being settled in the background. Their parties have
// left, but Redis may still count them.
type settling struct {
	mu   sync.Mutex
	n    int
	over chan struct{} // closed when n is 0 again; nil while it is
}

func (s *settling) add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.n == 1 {
		s.over = make(chan struct{})
	}
}

func (s *settling) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n--; s.n == 0 {
		close(s.over)
		s.over = nil
	}
}

// wait waits until there are none, or returns the cause when ctx ends.
func (s *settling) wait(ctx context.Context) error {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
