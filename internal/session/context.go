package session

import (
	"context"
	"time"
)

// WithoutDeadline hides the deadline of ctx. The result still ends at that time. When a deadline passes, rueidis
// closes the connection, which all callers use. When a context is cancelled, rueidis does not close it.
func WithoutDeadline(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); ok {
		return undated{ctx}
	}
	return ctx
}

type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }

// Milliseconds rounds d up. A lease in Redis may be longer than the client trusts it, never shorter.
func Milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
