package wait

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Server is what the loop needs of Redis and of the client. The loop may call Failed, GivenUp, Revoked, Gone and Go
// while it holds the mutex, so they must not block.
type Server interface {
	// Ask sends one acquire. If ctx ends before the answer, Ask returns at once. A Cancel that the client sends after
	// that runs in Redis after the acquire, unless the connection is lost in between. After until, a moment of the
	// server's clock, the acquire does nothing; 0: the acquire may run at any time.
	Ask(ctx context.Context, w *Waiter, mode lua.Mode, until int64) (lua.Acquired, error)
	// Roll reads a part of the queue in Redis: from behind the entry behind, or from the head if behind is empty. It
	// returns the entries of this client. Entry returns the entry of w.
	Roll(behind string) (lua.Roll, error)
	Entry(w *Waiter) string
	// Cancel removes from Redis what the waiters own, and their entries in the queue, in one step. The result says of
	// each waiter whether Redis has cancelled that waiter: at least one is cancelled.
	Cancel(ws []*Waiter) ([]bool, error)
	// Clock returns what the server's clock shows at the moment at, or less; 0: the client does not know.
	Clock(at time.Time) int64

	// Inbox waits until a grant for a waiter of this client would arrive. Listening reports whether a grant would
	// arrive now.
	Inbox(ctx context.Context) error
	Listening() bool
	// Failed takes an error that passes by itself, and the time when the client sent the command. Up waits until
	// Redis answers again.
	Failed(err error, sent time.Time)
	Up(ctx context.Context) error
	// Go runs a function in a goroutine that the client waits for before it closes.
	Go(func())

	// GivenUp takes the news that the caller of Wait for w has given up. It reports whether another goroutine
	// inherits w, and calls Wait for w. This happens only if inheritable is true.
	GivenUp(w *Waiter, inheritable bool) (inherited bool)
	// Revoked takes the news that Redis has revoked every grant to w up to this token. Redis may have granted w the
	// lock again.
	Revoked(w *Waiter, token int64)
	// Gone takes the news that nothing of w is left in Redis.
	Gone(w *Waiter)
}
