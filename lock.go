package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
)

// Lock is a lock of one name, whichever package made it: it is what code over "some lock" takes. Any number
// of goroutines share it and exclude each other. Two locks of one name on one client are the same lock. There
// is no usable zero value: see packages rlock and fairlock.
type Lock lock.Lock

func (l *Lock) inside() *lock.Lock { return (*lock.Lock)(l) }

// Name returns the name that it was made with.
func (l *Lock) Name() string { return l.inside().Name() }

// Lock waits until the lock is held or ctx ends. It survives any outage of Redis that ends before ctx does;
// if none of its commands was answered by then, the error joins the context's with ErrUnavailable. Other
// errors come at once: ErrWrongType, ErrTooManyWaiters, ErrClosed, and those of Redis that will not pass by
// themselves.
//
// A context derived from [Hold.Context] of this lock re-enters it: the result is a further hold, at
// once and without a trip to Redis, with an Unlock of its own; the lock is released by the last. Goroutines
// that share such a context all re-enter and do not exclude each other. The context of a hold that has ended
// does not re-enter. What counts is the client and the name: any lock of that name re-enters, on the terms of
// the hold that is there.
func (l *Lock) Lock(ctx context.Context) (*Hold, error) {
	h, err := l.inside().Lock(ctx)
	return (*Hold)(h), err
}

// TryLock makes one attempt. It returns ErrNotAcquired when somebody else holds the lock or is next, and
// ErrUnavailable when Redis does not answer within the client's command timeout.
func (l *Lock) TryLock(ctx context.Context) (*Hold, error) {
	h, err := l.inside().TryLock(ctx)
	return (*Hold)(h), err
}

// TryLockFor is Lock for a time of wait at most, which must be more than 0; then it returns ErrNotAcquired.
// When ctx ends by then, by its own deadline or earlier, the error is the context's, as that of Lock. The
// hold's context gets no deadline from it.
func (l *Lock) TryLockFor(ctx context.Context, wait time.Duration) (*Hold, error) {
	h, err := l.inside().TryLockFor(ctx, wait)
	return (*Hold)(h), err
}

// Do locks, calls f with the hold's context, and unlocks, also when f panics. The hold's context ends when
// the lock is lost.
//
// An error that matches [ErrNotRun] says that f never ran; it also says why, as Lock does. Any other
// is f's, or ErrLost: the lock was lost before f ended, so that f may not have been alone. If f ended in
// time, Do returns what f returned, whatever becomes of the release: that is waited for 100 ms at most and
// then goes on in the background, and if it fails the lease runs out, which is logged.
func (l *Lock) Do(ctx context.Context, f func(context.Context, *Hold) error) error {
	return l.inside().Do(ctx, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// TryDo is Do with TryLock.
func (l *Lock) TryDo(ctx context.Context, f func(context.Context, *Hold) error) error {
	return l.inside().TryDo(ctx, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// ForceUnlock takes the lock away from whoever holds it, gives it to the next waiter, and reports whether it
// was held. It is sent once; without an answer the error has ErrUnknownOutcome. The holder's hold is lost as
// soon as its client hears of it; until then two may believe that they hold the lock.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) { return l.inside().ForceUnlock(ctx) }

// Inspect returns who holds the lock and who waits for it in Redis.
func (l *Lock) Inspect(ctx context.Context) (State, error) {
	s, err := l.inside().Inspect(ctx)
	return State(s), err
}

// State is what Inspect returns: a snapshot that may be history when it arrives.
type State struct {
	Holder    string        // owner id of the holder: <client id>:<number>, or Redisson's; empty when the lock is free
	Mine      bool          // the holder belongs to the client that asks
	Token     int64         // its fencing token, or the first of those its goroutines share; 0 for none (Redisson's RLock)
	Remaining time.Duration // until its lease ends unless it is renewed; negative: never
	Waiting   int           // entries in the queue
	Queue     []string      // owner ids of the first 1000, the next one first
}
