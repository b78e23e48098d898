package locktest

import (
	"context"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/semaphore"
)

// Semaphore is one whose permits are holds, as those of the locks are.
type Semaphore struct{ *semaphore.Semaphore }

// NewSemaphore returns one whose every request has an entry of its own.
func NewSemaphore(c *session.Client, name string, set ...semaphore.Option) (Semaphore, error) {
	s, err := semaphore.New((*latchkey.Client)(c.Handle()), name, append(set, semaphore.WithoutLocalHandOff())...)
	return Semaphore{s}, err
}

// Acquire is the semaphore's, as are TryAcquire and Do.
func (s Semaphore) Acquire(ctx context.Context, n int) (*grant.Hold, error) {
	p, err := s.Semaphore.Acquire(ctx, n)
	return (*grant.Hold)(p), err
}

// TryAcquire is the semaphore's.
func (s Semaphore) TryAcquire(ctx context.Context, n int) (*grant.Hold, error) {
	p, err := s.Semaphore.TryAcquire(ctx, n)
	return (*grant.Hold)(p), err
}

// Do is the semaphore's.
func (s Semaphore) Do(ctx context.Context, n int, f func(context.Context, *grant.Hold) error) error {
	return s.Semaphore.Do(ctx, n, func(ctx context.Context, p *semaphore.Permits) error { return f(ctx, (*grant.Hold)(p)) })
}
