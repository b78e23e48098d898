package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// The bounds of the pause before a failed command is repeated.
const (
	FirstPause = 10 * time.Millisecond
	LastPause  = 400 * time.Millisecond
)

// Backoff makes the pauses between repetitions: full jitter over a span that doubles from [FirstPause] to [LastPause]
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). The zero value is ready.
type Backoff struct{ span time.Duration }

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	b.span = min(max(2*b.span, FirstPause), LastPause)
	return rand.N(b.span) + 1
}

// Reset starts over.
func (b *Backoff) Reset() { b.span = 0 }

// Until returns a context that ends with either, for the reason of the one that was first. stop must be called.
func Until(ctx, closing context.Context) (merged context.Context, stop func()) {
	merged, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(closing, func() { cancel(context.Cause(closing)) })
	return merged, func() { unhook(); cancel(nil) }
}

// Sleep pauses for d and returns the cause when ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
