package wait

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Server is what the loop needs of Redis and of the client. Failed, GivenUp, Revoked, Gone and Go may be
// called with the mutex held: they must not block.
type Server interface {
	// Ask sends one acquire. When ctx ends before the answer, it returns at once; a Cancel that is sent
	// after that runs after it in Redis, unless the connection is lost in between. The acquire does nothing
	// after until, a moment of the server's clock; 0: it may run at any time.
	Ask(ctx context.Context, w *Waiter, mode lua.Mode, until int64) (lua.Acquired, error)
	// Roll reads a part of the queue in Redis, behind that entry, or from the head if it is empty: which of its
	// entries are this client's. Entry is w's entry.
	Roll(behind string) (lua.Roll, error)
	Entry(w *Waiter) string
	// Cancel removes from Redis what the waiters own, and their entries in the queue, in one step. It returns
	// which of them were cancelled: one at least.
	Cancel(ws []*Waiter) ([]bool, error)
	// Clock returns what the server's clock shows at that moment, or less; 0 when that is not known.
	Clock(at time.Time) int64

	// Inbox waits until a grant for a waiter of this client would arrive. Listening reports whether it would now.
	Inbox(ctx context.Context) error
	Listening() bool
	// Failed is told of an error that passes by itself, and when its command was sent. Up waits until Redis
	// answers again.
	Failed(err error, sent time.Time)
	Up(ctx context.Context) error
	// Go runs a function in a goroutine that the client waits for before it closes.
	Go(func())

	// GivenUp is told that the caller of Wait for w has given up. It reports whether another goroutine inherits
	// w and calls Wait for it, which happens only when w is inheritable.
	GivenUp(w *Waiter, inheritable bool) (inherited bool)
	// Revoked is told that Redis has revoked what it granted w up to this token. It may have granted w the lock
	// again.
	Revoked(w *Waiter, token int64)
	// Gone is told that nothing of w is left in Redis.
	Gone(w *Waiter)
}
