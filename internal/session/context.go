package session

import (
	"context"
	"time"
)

// WithoutDeadline hides the deadline of a context, which ends at that time all the same. When a deadline
// passes, rueidis closes the connection, which everybody uses. At a cancellation it does not.
func WithoutDeadline(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); ok {
		return undated{ctx}
	}
	return ctx
}

type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

// Milliseconds rounds up. A lease in Redis may be longer than it is trusted, never shorter.
func Milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
