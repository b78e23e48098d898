package core

import (
	"context"
	"time"
)

// Await waits until the latch is open.
func (l *Latch) Await(ctx context.Context) error {
	began := time.Now()
	err := l.pass(ctx)
	l.circle.awaited(ctx, l.name, began, err)
	return err
}

// Await waits for the others, and returns the generation and how many came before.
func (b *Barrier) Await(ctx context.Context) (generation, index int64, err error) {
	began := time.Now()
	generation, index, err = b.pass(ctx)
	b.circle.awaited(ctx, b.name, began, err)
	return generation, index, err
}
