// Package fairlock is a lock across processes that is granted in the order of arrival: all waiters of all
// processes queue in Redis, first in, first out. The order is that in which Redis received them
// ([latchkey.Hold.Sequence]). A waiter whose process died is skipped; one whose subscription was interrupted
// keeps its place unless its turn came meanwhile.
//
// Unlike Redisson's RFairLock, whose layout it does not share, a dead waiter costs no time. Package rlock
// needs fewer queue entries and is fair among processes instead.
//
// # Guarantees
//
// Those of package latchkey: at most one trusted hold, tokens that grow, no forgotten waiter, nothing left
// behind. One name is one lock, also between package rlock and package fairlock, and with Java processes that
// use Redisson's RLock.
package fairlock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/core"
)

// Lock is a lock of one name. Any number of goroutines share it and exclude each other; two locks of one name
// on one client are the same lock. There is no usable zero value: see [New].
type Lock core.Lock

// Option configures a lock.
type Option core.LockOption

// WithLease sets the lease, which is renewed every third of it for as long as the lock is held: after its
// holder was killed the lock is free no later than this. From 10 ms to 24 h; default: the client's. Excludes
// [WithFixedLease].
func WithLease(d time.Duration) Option { return Option(core.WithLease(d)) }

// WithFixedLease makes holds last d at most: they are not renewed beyond that, and are lost then. From 10 ms
// to 24 h.
func WithFixedLease(d time.Duration) Option { return Option(core.WithFixedLease(d)) }

// WithMinHold keeps the lock taken for d from when it was acquired: an Unlock before leaves the rest as a
// lease that nobody renews. For a job that must not run twice although the clocks of its processes differ.
// More than 0, up to 24 h, and not longer than a fixed lease or longest hold; default: none.
func WithMinHold(d time.Duration) Option { return Option(core.WithMinHold(d)) }

// WithMaxHold ends renewal so that a hold is lost d after it was acquired at the latest. At least 10 ms;
// default: none.
func WithMaxHold(d time.Duration) Option { return Option(core.WithMaxHold(d)) }

// WithoutReentry makes attempts with a context that holds the lock already return ErrReentered at once.
func WithoutReentry() Option { return Option(core.WithoutReentry()) }

// New returns the lock of a name. It does no I/O. The name, with the client's key prefix, is a key in Redis:
// 1 to 1024 bytes, with balanced braces, of which the first pair is not empty. It returns ErrInvalid for
// other names, a nil client and options out of range.
func New(c *latchkey.Client, name string, opts ...Option) (*Lock, error) {
	set := make([]core.LockOption, len(opts))
	for i, o := range opts {
		set[i] = core.LockOption(o)
	}
	l, err := core.NewLock((*core.Client)(c), name, false, set)
	return (*Lock)(l), err
}

func (l *Lock) core() *core.Lock { return (*core.Lock)(l) }

// Name returns the name that was given to New.
func (l *Lock) Name() string { return l.core().Name() }

// Lock waits until the lock is held or ctx ends. It survives any outage of Redis that ends before ctx does;
// if none of its commands was answered by then, the error joins the context's with ErrUnavailable. Other
// errors come at once: ErrWrongType, ErrTooManyWaiters, ErrClosed, and those of Redis that will not pass by
// themselves.
//
// A context derived from [latchkey.Hold.Context] of this lock re-enters it: the result is a further hold, at
// once and without a trip to Redis, with an Unlock of its own; the lock is released by the last. Goroutines
// that share such a context all re-enter and do not exclude each other. The context of a hold that has ended
// does not re-enter. What counts is the client and the name: any lock of that name re-enters, on the terms of
// the hold that is there.
func (l *Lock) Lock(ctx context.Context) (*latchkey.Hold, error) {
	h, err := l.core().Lock(ctx)
	return (*latchkey.Hold)(h), err
}

// TryLock makes one attempt. It returns ErrNotAcquired when somebody else holds the lock or is next, and
// ErrUnavailable when Redis does not answer within the client's command timeout.
func (l *Lock) TryLock(ctx context.Context) (*latchkey.Hold, error) {
	h, err := l.core().TryLock(ctx)
	return (*latchkey.Hold)(h), err
}

// TryLockFor is Lock for a time of wait at most, which must be more than 0; then it returns ErrNotAcquired.
// When ctx ends by then, by its own deadline or earlier, the error is the context's, as that of Lock. The
// hold's context gets no deadline from it.
func (l *Lock) TryLockFor(ctx context.Context, wait time.Duration) (*latchkey.Hold, error) {
	h, err := l.core().TryLockFor(ctx, wait)
	return (*latchkey.Hold)(h), err
}

// Do locks, calls f with the hold's context, and unlocks, also when f panics. The hold's context ends when
// the lock is lost.
//
// An error that matches [latchkey.ErrNotRun] says that f never ran; it also says why, as Lock does. Any other
// is f's, or ErrLost: the lock was lost before f ended, so that f may not have been alone. If f ended in
// time, Do returns what f returned, whatever becomes of the release: that is waited for 100 ms at most and
// then goes on in the background, and if it fails the lease runs out, which is logged.
func (l *Lock) Do(ctx context.Context, f func(context.Context, *latchkey.Hold) error) error {
	return l.core().Do(ctx, func(ctx context.Context, h *core.Hold) error { return f(ctx, (*latchkey.Hold)(h)) })
}

// TryDo is Do with TryLock.
func (l *Lock) TryDo(ctx context.Context, f func(context.Context, *latchkey.Hold) error) error {
	return l.core().TryDo(ctx, func(ctx context.Context, h *core.Hold) error { return f(ctx, (*latchkey.Hold)(h)) })
}

// ForceUnlock takes the lock away from whoever holds it, gives it to the next waiter, and reports whether it
// was held. It is sent once; without an answer the error has ErrUnknownOutcome. The holder's hold is lost as
// soon as its client hears of it; until then two may believe that they hold the lock.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) { return l.core().Force(ctx) }

// Inspect returns who holds the lock and who waits for it in Redis.
func (l *Lock) Inspect(ctx context.Context) (latchkey.State, error) {
	s, err := l.core().Inspect(ctx)
	return latchkey.State(s), err
}
