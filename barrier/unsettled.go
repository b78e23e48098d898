package barrier

import (
	"context"
	"sync"
)

// unsettled counts the arrivals of a client whose settle goes on in the background. Their parties have left,
// but may still be counted in Redis.
type unsettled struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0 again; nil while it is
}

func (u *unsettled) add() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n++; u.n == 1 {
		u.none = make(chan struct{})
	}
}

func (u *unsettled) done() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n--; u.n == 0 {
		close(u.none)
		u.none = nil
	}
}

// wait waits until there are none, or returns the cause when ctx ends.
func (u *unsettled) wait(ctx context.Context) error {
	u.mu.Lock()
	none := u.none
	u.mu.Unlock()
	if none == nil {
		return nil
	}
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
