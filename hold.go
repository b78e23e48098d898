package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
)

// Hold is a lock that is held. Its methods are safe for concurrent use. Holds come from the Lock methods. A
// nil one, as a Lock that failed returns, and the zero value are not held: Err and Unlock return ErrNotHeld,
// and Context one that has ended with it.
type Hold grant.Hold

func (h *Hold) inside() *grant.Hold { return (*grant.Hold)(h) }

// Name returns the name of the lock, without the client's key prefix.
func (h *Hold) Name() string { return h.inside().Name() }

// Context is derived from the context that was given to Lock, and ends with the hold: its cause is ErrLost
// when the lease can no longer be trusted, ErrReleased after Unlock, ErrClosed when the client was closed,
// and the parent's when that ends. Its Err compares the clock, so that it is right at the first instruction
// after the process was stopped; Done closes within 10 ms of the end. A context derived from it re-enters the
// lock: see the Lock method.
//
// When only the parent ends, the lock is still held and renewed until Unlock: guarded code may still run.
func (h *Hold) Context() context.Context { return h.inside().Context() }

// Token is the fencing token: greater than that of every hold of this lock before. Holds that re-entered
// share it. It is in the order of the server's clock in microseconds since 1970, never more than 5 ms ahead
// of it unless that was set back, and less than 2^53. So it also grows when Redis loses its data, unless that
// takes less than 5 ms (FLUSHALL in use), or the clock of the server that takes over is behind; then only for
// the clients that have seen the lock's tokens before.
func (h *Hold) Token() int64 { return h.inside().Token() }

// Unlock ends the hold. Its context ends first, with ErrReleased; the release is sent even when ctx has
// ended. Unlock waits for the reply until ctx ends, or for the release timeout if it has; then it returns
// ErrUnknownOutcome, and the release goes on in the background until the lease can no longer be trusted. So
// with context.Background() it waits as long as that while Redis is away. The last of those that re-entered
// releases.
//
// That of package rlock passes the lock on without asking Redis, and without waiting for it, when a goroutine
// of the same process waits. Then nil says that the lease was still trusted, and not that Redis still had the
// lock: had it been deleted there, or lost in a failover, the next renewal or offer finds out. Where that
// matters, let the store that the lock guards look at the token, or use package fairlock.
//
// An error other than ErrLost says nothing about the work that was guarded: that was alone if the hold was
// trusted when it ended, which Held and Err say before Unlock. Whoever returns such an error to callers who
// then do the work again should use Do, which makes the difference.
//
// The first Unlock after the lock was lost returns ErrLost, and each but the first ErrNotHeld. After Close or
// Shutdown it releases what was held until then, if the lease is not over, and returns ErrClosed when it did
// not.
func (h *Hold) Unlock(ctx context.Context) error { return h.inside().Unlock(ctx) }

// Held reports whether the lock is held at this instant, by the clock.
func (h *Hold) Held() bool { return h.inside().Held() }

// Err returns nil while the lock is held, else why it is not: ErrReleased, ErrLost or ErrClosed.
func (h *Hold) Err() error { return h.inside().Err() }

// Remaining returns for how long the lease can be trusted from now on without another renewal; 0 when it is
// over.
func (h *Hold) Remaining() time.Duration { return h.inside().Remaining() }

// Sequence is the place in the queue from which the lock was granted: greater than that of every waiter of
// this lock that was queued before. It is 0 for a lock that was had by asking, as a free one is, or from
// another goroutine of the process, or by a waiter that had to ask again meanwhile, as after a new
// subscription.
func (h *Hold) Sequence() int64 { return h.inside().Sequence() }
