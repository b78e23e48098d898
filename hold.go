package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
)

// Hold is a lock that is held. The methods of [Lock] return it. The methods are safe for concurrent use. A nil Hold,
// and the zero value, are not held: Err and Unlock return [ErrNotHeld], and Context returns a context that has ended
// with it.
type Hold insideHold

type insideHold = hold.Hold

func (h *Hold) inside() *hold.Hold { return (*hold.Hold)(h) }

// Name returns the name of the lock, without the client's key prefix.
func (h *Hold) Name() string { return h.inside().Name() }

// Context is derived from the context that Lock was given, and ends with the hold. Its cause is [ErrLost] when the
// lease can no longer be trusted, [ErrReleased] after Unlock, [ErrClosed] when the client was closed, or the cause of
// the parent. A context derived from it re-enters the lock: see [Lock.Lock].
//
// Its Err compares the clock, so it is right at the first instruction after the process was stopped. Done closes
// within 10 ms of the end. If only the parent ends, the lock stays held and renewed until Unlock: guarded code may
// still run.
func (h *Hold) Context() context.Context { return h.inside().Context() }

// Token returns the fencing token: greater than the token of every earlier hold of this lock, and less than 2^53. Holds
// that re-entered share it. A read hold's token is not smaller than the token of an earlier write hold, and smaller than
// the token of every later one.
//
// The token follows the server's clock, in microseconds since 1970, at most 5 ms ahead of it. So it also grows when
// Redis loses its data. It does not if the data was lost within 5 ms (FLUSHALL in use), or if the clock of the next
// server is behind: then it grows only for clients that have seen the lock's tokens before.
func (h *Hold) Token() int64 { return h.inside().Token() }

// Unlock ends the hold. The hold's context ends first, with [ErrReleased]. The release is sent even if ctx has ended.
// After re-entry, the last Unlock releases.
//
// Unlock waits for the reply until ctx ends; if ctx has ended already, for the release timeout. Then it returns
// [ErrUnknownOutcome], and the release goes on in the background until the lease can no longer be trusted. So while
// Redis is away, Unlock with context.Background() waits that long.
//
// In package rlock, Unlock passes the lock to a waiting goroutine of the same process without asking Redis: a local
// hand-off. Then nil says that the lease was still trusted, and not that Redis still had the lock. If Redis had lost
// it, the next renewal finds out. If that matters, let the guarded store compare tokens, or use package fairlock.
//
// The first Unlock after a loss returns [ErrLost]. A second Unlock returns [ErrNotHeld]. After Close or Shutdown,
// Unlock still releases an earlier hold, if its lease is not over; otherwise it returns [ErrClosed].
//
// No error but ErrLost says anything about the guarded work. The work was alone if the hold was trusted when it ended:
// ask Held or Err before Unlock. If your callers repeat the work after an error, use [Lock.Do], whose errors say
// whether the work ran. A deferred Unlock whose error you join to the function's needs a named result: else the
// error is dropped without a word.
func (h *Hold) Unlock(ctx context.Context) error { return h.inside().Unlock(ctx) }

// Detach ends the hold, and returns a text with which another process goes on with it: [Lock.Attach]. The lock is
// never free in between, and the token stays. So a worker can unlock what a web request has locked:
//
//	text, err := hold.Detach(ctx) // in the request
//	...
//	hold, err := lock.Attach(ctx, text) // in the worker
//
// The hold's context ends first, with [ErrReleased], and its Unlock returns [ErrNotHeld]. The lease lasts once more
// for its whole length, and is not renewed. If no process attaches the text in that time, the next waiter gets the
// lock.
//
// Detach is sent until Redis answers, and waits as Unlock does. With [ErrUnknownOutcome] it returns a text as well:
// its Attach tells whether the hold was left. It returns [ErrInvalid], and the hold goes on, if other holds share the
// tenure: after re-entry, with other readers of the process, after a Downgrade without an answer, and for package
// redlock. [ErrLost] and [ErrNotHeld] are as for Unlock. After Close or Shutdown it returns [ErrClosed], and Unlock
// still releases.
//
// The text gives the lock to its reader: keep it secret.
func (h *Hold) Detach(ctx context.Context) (text string, err error) {
	return grant.Detach(ctx, h.inside())
}

// DetachFor is Detach with another time in which the text can be attached: d, from 10 ms to 24 h.
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
// The first call asks Redis in the background, and makes other clients tell this one: the channel closes within a
// trip. A message may be lost, so the client also asks every two seconds. A hold without a call of Wanted costs
// nothing. With one, a TryLock of another client takes a trip more: it waits for the holder's answer.
//
// The channel stays closed, also if the waiters give up. It stays open if the hold ends first. Each call of a hold
// returns the same channel; nil, which blocks for ever, for a nil Hold and the zero value. For a read-write lock only
// waiters count: a TryLock of another process is not seen. A waiter of Redisson is seen within two seconds, and an
// RSpinLock never. On a client [WithoutPubSub] a queued waiter is seen within two seconds, and one that polls never.
func (h *Hold) Wanted() <-chan struct{} { return h.inside().Wanted() }

// Held reports whether the lock is held at this instant, by the clock.
func (h *Hold) Held() bool { return h.inside().Held() }

// Err returns nil while the lock is held; otherwise why it is not: [ErrReleased], [ErrLost] or [ErrClosed].
func (h *Hold) Err() error { return h.inside().Err() }

// Remaining returns how long the lease can be trusted from now on without another renewal; 0 if it is over.
func (h *Hold) Remaining() time.Duration { return h.inside().Remaining() }

// Sequence returns the place in the queue from which the lock was granted: greater than the place of every waiter of this
// lock that was queued before. It is 0 for a lock that was acquired without a place in the queue, by a local hand-off,
// or by a waiter that had to ask again, and may have lost its place.
func (h *Hold) Sequence() int64 { return h.inside().Sequence() }
