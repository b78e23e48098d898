package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
)

// Hold is a lock that is held. The methods of [Lock] return it, and are safe for concurrent use. A nil Hold and the
// zero value are not held: Err and Unlock return [ErrNotHeld], and Context returns a context that has ended with it.
type Hold insideHold

type insideHold = hold.Hold

func (h *Hold) inside() *hold.Hold { return (*hold.Hold)(h) }

// Name returns the name of the lock, without the client's key prefix.
func (h *Hold) Name() string { return h.inside().Name() }

// Context is derived from the context that Lock was given, and ends with the hold. Its cause is [ErrLost] when the
// lease can no longer be trusted, [ErrReleased] after Unlock, [ErrClosed] when the client was closed, or the cause of
// the parent. If only the parent ends, the lock stays held until Unlock. Its Err compares the clock, so it is right at
// the first instruction after the process was stopped. Done closes within 10 ms of the end.
func (h *Hold) Context() context.Context { return h.inside().Context() }

// Token returns the fencing token: greater than the token of every earlier hold of this lock, and less than 2^53.
// Holds that re-entered share it. A read hold's token lies between the tokens of the write holds before and after it,
// and may equal the earlier one. It follows the server's clock, in microseconds since 1970, so it also grows when
// Redis loses its data.
func (h *Hold) Token() int64 { return h.inside().Token() }

// Unlock ends the hold. The hold's context ends first, with [ErrReleased]. The release is sent even if ctx has ended.
// After re-entry, the last Unlock releases.
//
// Unlock waits for the reply until ctx ends; if ctx has ended already, for the command timeout. Then it returns
// [ErrUnknownOutcome], and the release goes on in the background until the lease ends.
//
// In package rlock, Unlock passes the lock to a waiting goroutine of the same process without asking Redis: a local
// hand-off. Then nil says that the lease was still trusted.
//
// The first Unlock after a loss returns [ErrLost], a second Unlock [ErrNotHeld]. After Close or Shutdown, Unlock still
// releases within the lease; later it returns [ErrClosed] and ErrLost. If callers repeat work after an error, use
// [Lock.Do], whose errors say whether the work ran.
func (h *Hold) Unlock(ctx context.Context) error { return h.inside().Unlock(ctx) }

// Detach ends the hold, and returns a text with which another process goes on with it: [Lock.Attach]. The lock is
// never free in between, and the token stays. So a worker can unlock what a web request has locked:
//
//	text, err := hold.Detach(ctx) // in the request
//	...
//	hold, err := lock.Attach(ctx, text) // in the worker
//
// If no process attaches the text within a lease, the next waiter gets the lock. The text gives the lock to its
// reader: keep it secret.
//
// Detach waits and fails as Unlock does. With [ErrUnknownOutcome] it returns a text as well. It returns [ErrInvalid],
// and the hold goes on, if other holds share the lease, and for package redlock.
func (h *Hold) Detach(ctx context.Context) (text string, err error) {
	return grant.Detach(ctx, h.inside())
}

// DetachFor is Detach with another time, from 10 ms to 24 h.
func (h *Hold) DetachFor(ctx context.Context, d time.Duration) (text string, err error) {
	return grant.DetachFor(ctx, h.inside(), d)
}

// Wanted returns a channel that closes when another goroutine or process waits for the lock, or has tried to get it.
// So a long job can save its state and let go:
//
//	select {
//	case <-hold.Wanted():
//		save(state)
//		return hold.Unlock(ctx)
//	case <-hold.Context().Done():
//		return context.Cause(hold.Context())
//	case part := <-work:
//		...
//	}
//
// The channel closes within a trip, or within two seconds if a message is lost, and stays closed. It stays open if the
// hold ends first. A nil Hold and the zero value return nil. For a read-write lock only waiters count. A waiter that
// polls, as of an RSpinLock or without pub/sub, may never be seen.
func (h *Hold) Wanted() <-chan struct{} { return h.inside().Wanted() }

// Held reports whether the lock is held at this instant, by the clock.
func (h *Hold) Held() bool { return h.inside().Held() }

// Err returns nil while the lock is held; otherwise why it is not: [ErrReleased], [ErrLost] or [ErrClosed].
func (h *Hold) Err() error { return h.inside().Err() }

// Remaining returns how long the lease can be trusted without another renewal; 0 if it is over.
func (h *Hold) Remaining() time.Duration { return h.inside().Remaining() }

// Sequence returns the place in the queue from which the lock was granted: greater than the place of every earlier
// waiter. It is 0 without one: for a free lock, a local hand-off, or a waiter that had to ask again.
func (h *Hold) Sequence() int64 { return h.inside().Sequence() }
