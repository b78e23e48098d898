package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
)

// Lock is the lock of a name, or one half of a read-write lock. Packages rlock, fairlock, spinlock, redlock and rwlock
// make it. Goroutines that share a Lock exclude each other, unless it is for readers. Two Locks of one name on one
// client are the same lock. The methods are safe for concurrent use. The zero value is not usable.
type Lock anyLock

type anyLock = lock.Lock

func (l *Lock) inside() *lock.Lock { return (*lock.Lock)(l) }

// Name returns the name that New was given.
func (l *Lock) Name() string { return l.inside().Name() }

// Lock waits until the lock is held, or ctx ends. The hold's context is derived from ctx. So a deadline of ctx bounds
// your work as well: use [Lock.TryLockFor] to bound the wait alone.
//
// With a context derived from [Hold.Context] of this lock, Lock re-enters: it returns a further hold at once, on the
// terms of the first. The last Unlock releases. Goroutines that share such a context do not exclude each other.
//
// Lock survives an outage of Redis that ends before ctx does. If Redis is away when ctx ends, the error also matches
// [ErrUnavailable].
func (l *Lock) Lock(ctx context.Context) (*Hold, error) {
	h, err := l.inside().Lock(ctx)
	return (*Hold)(h), err
}

// TryLock makes one attempt. It returns [ErrNotAcquired] if the lock is held, or another waiter is next, and
// [ErrUnavailable] if Redis does not answer within the command timeout; at once if Redis has been away for that long.
func (l *Lock) TryLock(ctx context.Context) (*Hold, error) {
	h, err := l.inside().TryLock(ctx)
	return (*Hold)(h), err
}

// TryLockFor is Lock for wait at most, which must be more than 0. After that it returns [ErrNotAcquired]. The hold's
// context has no deadline of wait.
func (l *Lock) TryLockFor(ctx context.Context, wait time.Duration) (*Hold, error) {
	h, err := l.inside().TryLockFor(ctx, wait)
	return (*Hold)(h), err
}

// Do locks, calls f with the hold's context, and unlocks, also if f panics. That context ends when the lock is lost,
// or with ctx: use [Lock.TryDoFor] to bound the wait alone.
//
// If the error matches [ErrNotRun], f never ran, and the error says why. If it matches [ErrLost], f may not have been
// alone. Any other error is f's own. Do waits 100 ms at most for the release, which then goes on in the background.
func (l *Lock) Do(ctx context.Context, f func(context.Context, *Hold) error) error {
	return l.inside().Do(ctx, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// TryDo is [Lock.Do] with [Lock.TryLock].
func (l *Lock) TryDo(ctx context.Context, f func(context.Context, *Hold) error) error {
	return l.inside().TryDo(ctx, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// TryDoFor is [Lock.Do] with [Lock.TryLockFor]: wait bounds the wait alone.
func (l *Lock) TryDoFor(ctx context.Context, wait time.Duration, f func(context.Context, *Hold) error) error {
	return l.inside().TryDoFor(ctx, wait, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// Attach goes on with a hold that [Hold.Detach] has ended, on this client or another one, on the terms of this lock.
// The token stays. While Redis is away it is sent again until ctx ends. It returns [ErrNotHeld] if another Attach of
// the text was first, its time was over, or the lock was taken away; [ErrLost] if the lease was over before the answer
// came; and [ErrInvalid] for a text that is malformed, or of another lock.
func (l *Lock) Attach(ctx context.Context, text string) (*Hold, error) {
	h, err := l.inside().Attach(ctx, text)
	return (*Hold)(h), err
}

// ForceUnlock takes the lock away from its holder, grants it to the next waiter, and reports whether it was held.
// Without an answer the error matches [ErrUnknownOutcome]. Until the holder's client hears of it, two holders may
// believe that they have the lock. For a day Inspect shows who did it, with the note of ctx ([WithNote]).
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) { return l.inside().ForceUnlock(ctx) }

// ForceUnlockToken is [Lock.ForceUnlock] for the holder with this Token; 0 is a holder without one. If another holder
// has the lock by now, it returns false. A negative token is [ErrInvalid].
func (l *Lock) ForceUnlockToken(ctx context.Context, token int64) (bool, error) {
	return l.inside().ForceUnlockToken(ctx, token)
}

// Inspect returns who holds the lock, and who waits for it in Redis. If Redis does not answer, it returns
// [ErrUnavailable].
func (l *Lock) Inspect(ctx context.Context) (State, error) {
	s, err := l.inside().Inspect(ctx)
	state := State{Holder: holderOf(s.Holder), Readers: s.Readers, Waiting: s.Waiting, Forced: Identity(s.Forced)}
	for _, w := range s.Waiters {
		state.Waiters = append(state.Waiters, Waiter{Identity(w.Party), w.Owner, w.Mine, Mode(w.Mode), w.Permits})
	}
	return state, err
}
