package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
)

// Hold is a lock that is held. The methods of [Lock] return it. Its methods are safe for concurrent use. A
// nil one, as a Lock that failed returns, and the zero value are not held: Err and Unlock return
// [ErrNotHeld], and Context returns a context that has ended with it.
type Hold insideHold

type insideHold = hold.Hold

func (h *Hold) inside() *hold.Hold { return (*hold.Hold)(h) }

// Name returns the name of the lock, without the client's key prefix.
func (h *Hold) Name() string { return h.inside().Name() }

// Context is derived from the context that was given to Lock, and ends with the hold. Its cause is [ErrLost]
// when the lease can no longer be trusted, [ErrReleased] after Unlock, [ErrClosed] when the client was
// closed, and the parent's when that ends. A context derived from it re-enters the lock: see [Lock.Lock].
//
// Its Err compares the clock, so it is right at the first instruction after the process was stopped. Done
// closes within 10 ms of the end.
//
// When only the parent ends, the lock is still held, and renewed until Unlock: guarded code may still run.
func (h *Hold) Context() context.Context { return h.inside().Context() }

// Token returns the fencing token: greater than that of every hold of this lock before, and less than 2^53.
// Holds that re-entered share it. The token of a read hold is not smaller than that of any write hold before,
// and smaller than that of every write hold after.
//
// It follows the server's clock in microseconds since 1970, and is never more than 5 ms ahead of it unless
// that was set back. So it also grows when Redis loses its data. There are two exceptions: losing the data
// took less than 5 ms (FLUSHALL in use), or the clock of the server that takes over is behind. Then it grows
// only for the clients that have seen the lock's tokens before.
func (h *Hold) Token() int64 { return h.inside().Token() }

// Unlock ends the hold. Its context ends first, with [ErrReleased]. The release is sent even when ctx has
// ended. Of holds that re-entered, the last Unlock releases.
//
// Unlock waits for the reply until ctx ends, or for the release timeout if it has ended already. Then it
// returns [ErrUnknownOutcome], and the release goes on in the background until the lease can no longer be
// trusted. So while Redis is away, Unlock with context.Background() waits that long.
//
// In package rlock, when a goroutine of the same process waits, Unlock passes the lock to it without asking
// Redis: a local hand-off. Then nil says that the lease was still trusted, and not that Redis still had the
// lock. Had it been deleted there, or lost in a failover, the next renewal or offer finds out. Where that
// matters, let the store that the lock guards compare tokens, or use package fairlock.
//
// The first Unlock after the lock was lost returns [ErrLost]. Every Unlock of a hold but the first returns
// [ErrNotHeld]. After Close or Shutdown it still releases a hold from before, if the lease is not over;
// otherwise it returns [ErrClosed].
//
// A defer that joins the error of Unlock to that of its function needs a named result. Without one the error
// is dropped, and neither the compiler nor vet says so; [Lock.Do] has no such trap.
//
// An error other than ErrLost says nothing about the work that was guarded: that was alone if the hold was
// trusted when it ended, which Held and Err say before Unlock. Code whose callers do the work again after an
// error should use [Lock.Do], whose errors say whether the work ran.
func (h *Hold) Unlock(ctx context.Context) error { return h.inside().Unlock(ctx) }

// Downgrade turns a write hold of a read-write lock (package rwlock) into a read hold. No writer comes in
// between, and readers that wait at the head of the queue are granted the lock. The hold, its context and its
// token stay what they are. It does nothing for a hold that reads already.
//
// Downgrade is sent until Redis answers, or ctx ends, or the lease can no longer be trusted. If it may have
// taken effect without an answer, the error matches [ErrUnknownOutcome]: the hold goes on as one or the
// other, and Downgrade may be called again. It returns [ErrInvalid] for a hold of another lock, and for one
// that was re-entered; [ErrLost] and [ErrNotHeld] as Unlock does. If an Unlock comes meanwhile it returns
// [ErrReleased].
func (h *Hold) Downgrade(ctx context.Context) error { return grant.Downgrade(ctx, h.inside()) }

// Detach ends the hold, and returns a text with which another process goes on with it: [Lock.Attach]. Nobody
// has the lock in between, and the token stays. So what was locked in a web request can be unlocked by the
// worker that does the work:
//
//	text, err := hold.Detach(ctx) // in the request
//	...
//	hold, err := lock.Attach(ctx, text) // in the worker
//
// The hold's context ends first, with [ErrReleased], and its Unlock returns [ErrNotHeld]. From now on nobody
// renews the lease: it lasts for its whole length once more. When nobody has attached the text by then, the
// next waiter is granted the lock.
//
// Detach is sent until Redis answers, and waits as Unlock does. With [ErrUnknownOutcome] there is a text, and
// its Attach tells whether it is of use. It returns ErrInvalid, and the hold goes on, when other holds share
// the tenure: those that re-entered, and readers of the process (package rwlock). So it does after a
// Downgrade that was not answered, and for a lock over several servers (package redlock). [ErrLost] and
// [ErrNotHeld] are as with Unlock. After Close or Shutdown it returns [ErrClosed], and Unlock still releases
// the hold.
//
// Whoever has the text can have the lock: it is no secret to those who can write to Redis, and should be one
// to others.
func (h *Hold) Detach(ctx context.Context) (text string, err error) {
	return grant.Detach(ctx, h.inside())
}

// DetachFor is Detach for d, from 10 ms to 24 h, in place of the length of the lease: so long the text can be
// attached.
func (h *Hold) DetachFor(ctx context.Context, d time.Duration) (text string, err error) {
	return grant.DetachFor(ctx, h.inside(), d)
}

// Wanted returns a channel that is closed when somebody else wants the lock: another goroutine of this
// process, or another process, waits for it, or has tried to get it. So a long job can save its state and let
// go:
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
// The first call asks Redis in the background, and has those who come tell this client: so the channel closes
// within a trip. As a message may be lost, the client asks again every two seconds until the channel is
// closed or the hold has ended. A hold of which nobody calls Wanted pays nothing. A TryLock of another client
// takes a trip more while the lock is held by one of which somebody does: it waits for the holder's answer.
//
// The channel stays closed, also when those who waited have given up. It stays open when the hold ends before
// anybody came. It is the same one for each call of a hold; of nil and of the zero value it is nil, which
// blocks for ever. Of a read-write lock (package rwlock) those count who wait: a TryLock of another process
// is not seen.
//
// A waiter of Redisson is seen by the question, within two seconds, and one of its RSpinLock not at all. On a
// client without pub/sub ([WithoutPubSub]) a waiter that is queued is seen within two seconds, and one that
// polls not at all.
func (h *Hold) Wanted() <-chan struct{} { return h.inside().Wanted() }

// Held reports whether the lock is held at this instant, by the clock.
func (h *Hold) Held() bool { return h.inside().Held() }

// Err returns nil while the lock is held; otherwise why it is not: [ErrReleased], [ErrLost] or [ErrClosed].
func (h *Hold) Err() error { return h.inside().Err() }

// Remaining returns for how long the lease can be trusted from now on without another renewal; 0 when it is
// over.
func (h *Hold) Remaining() time.Duration { return h.inside().Remaining() }

// Sequence returns the place in the queue from which the lock was granted: greater than that of every waiter
// of this lock that was queued before. It is 0 for a lock that was acquired without queueing, or by a local
// hand-off. It is also 0 for a waiter that had to ask again, as after a new subscription: it may have lost
// its place.
func (h *Hold) Sequence() int64 { return h.inside().Sequence() }
