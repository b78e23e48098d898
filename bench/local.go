package main

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// weighted is a lock of this process alone: it knows contexts, and serves who came first. Every key is the
// same lock.
type weighted struct{ one *semaphore.Weighted }

func openWeighted(string) (Contender, error) { return weighted{semaphore.NewWeighted(1)}, nil }

func (w weighted) Lock(ctx context.Context, _ string) (Unlock, error) {
	if err := w.one.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() error { w.one.Release(1); return nil }, nil
}

func (w weighted) Close() {}
