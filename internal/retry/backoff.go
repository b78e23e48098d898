package retry

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"
)

// The bounds of the pause before a failed command is repeated: those of a [Backoff] that has none of its own.
const (
	FirstPause = 10 * time.Millisecond
	LastPause  = 400 * time.Millisecond
)

// Backoff makes the pauses between repetitions: full jitter over a span that doubles from First to Last
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). The zero value is ready. It is
// not safe for concurrent use.
type Backoff struct {
	First time.Duration // 0: [FirstPause]
	Last  time.Duration // 0: [LastPause]

	span time.Duration
}

// Next returns the next pause: more than 0, and Last at most.
func (b *Backoff) Next() time.Duration {
	b.span = min(max(2*b.span, cmp.Or(b.First, FirstPause)), cmp.Or(b.Last, LastPause))
	return rand.N(b.span) + 1
}

// Reset makes the next pause a short one again.
func (b *Backoff) Reset() { b.span = 0 }

// Until returns a context that ends with either of the two, with the cause of the one that ended first. Its
// values are those of ctx. stop must be called.
func Until(ctx, closing context.Context) (merged context.Context, stop func()) {
	if ctx.Done() == nil {
		return valued{closing, ctx}, func() {}
	}
	merged, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(closing, func() { cancel(context.Cause(closing)) })
	return merged, func() { unhook(); cancel(nil) }
}

// valued is a context that has the values of another one as well, which never ends.
type valued struct {
	context.Context
	values context.Context
}

// Value asks the context itself first: package context finds the cause of its end by that.
func (v valued) Value(key any) any {
	if found := v.Context.Value(key); found != nil {
		return found
	}
	return v.values.Value(key)
}

// Sleep pauses for d. It returns the cause when ctx ends before.
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
