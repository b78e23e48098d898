package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
)

// Lock is the lock of a name, or one half of a read-write lock. Packages rlock, fairlock, spinlock, redlock and rwlock
// make it. Code that works with any lock takes this type. Goroutines that share a Lock exclude each other, unless it
// is for readers. Two Locks of one name on one client are the same lock. The methods are safe for concurrent use. The
// zero value is not usable.
type Lock anyLock

type anyLock = lock.Lock

func (l *Lock) inside() *lock.Lock { return (*lock.Lock)(l) }

// Name returns the name that the lock was made with, without the client's key prefix.
func (l *Lock) Name() string { return l.inside().Name() }

// Lock waits until the lock is held, or ctx ends. The hold's context is derived from ctx. So a deadline of ctx bounds
// what you do with the lock as well: use [Lock.TryLockFor] to bound the wait alone.
//
// With a context derived from [Hold.Context] of this lock, Lock re-enters: it returns a further hold at once, without
// a command. Each hold needs an Unlock, and the last Unlock releases. Goroutines that share such a context do not
// exclude each other. Any Lock of the same client and name re-enters, on the terms of the first hold.
//
// Lock survives an outage of Redis that ends before ctx does. If Redis is away when ctx ends, the error also matches
// [ErrUnavailable]. A queued waiter asks the server only every two seconds: it does not notice earlier that a server
// hangs without closing its connections. Other errors come at once: [ErrWrongType], [ErrTooManyWaiters], [ErrClosed],
// and errors of Redis that do not pass by themselves.
func (l *Lock) Lock(ctx context.Context) (*Hold, error) {
	h, err := l.inside().Lock(ctx)
	return (*Hold)(h), err
}

// TryLock makes one attempt. It returns [ErrNotAcquired] if the lock is held, or another waiter is next. It returns
// [ErrUnavailable] if Redis does not answer within the command timeout; at once if Redis has been away for that long.
// The client goes on probing: TryLock works again within half a second as a rule.
//
// If the context of a Lock ends, Redis hears of it some milliseconds later, and until then that waiter may be next. A
// TryLock of the same client waits for that, 50 ms at most. A TryLock of another client may be refused.
func (l *Lock) TryLock(ctx context.Context) (*Hold, error) {
	h, err := l.inside().TryLock(ctx)
	return (*Hold)(h), err
}

// TryLockFor is Lock for wait at most, which must be more than 0. After that it returns [ErrNotAcquired]. If ctx ends
// first, the error is ctx's. wait puts no deadline on the hold's context.
func (l *Lock) TryLockFor(ctx context.Context, wait time.Duration) (*Hold, error) {
	h, err := l.inside().TryLockFor(ctx, wait)
	return (*Hold)(h), err
}

// Do locks, calls f with the hold's context, and unlocks, also if f panics. The hold's context ends when the lock is
// lost, or with ctx: a deadline of ctx bounds f as well. Use [Lock.TryDoFor] to bound the wait alone.
//
// If the error matches [ErrNotRun], f never ran, and the error says why. Any other error is f's own, or [ErrLost]: the
// lock was lost before f ended, so f may not have been alone. If f ended while the lease was trusted, Do returns what
// f returned, whatever becomes of the release. Do waits for the release for 100 ms at most. Then it goes on in the
// background, and a failure is logged: the lease runs out.
//
// There is one exception. If the lock was taken away by [Lock.ForceUnlock], or its key was deleted, and the client has
// not heard of it, the answer to the release says so, and Do returns [ErrLost]. A local hand-off (see [Hold.Unlock])
// and a lock that lingers do not ask Redis, so they do not find this out.
func (l *Lock) Do(ctx context.Context, f func(context.Context, *Hold) error) error {
	return l.inside().Do(ctx, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// TryDo is [Lock.Do] with [Lock.TryLock].
func (l *Lock) TryDo(ctx context.Context, f func(context.Context, *Hold) error) error {
	return l.inside().TryDo(ctx, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// TryDoFor is [Lock.Do] with [Lock.TryLockFor]: wait bounds the wait for the lock, and neither f nor its context.
func (l *Lock) TryDoFor(ctx context.Context, wait time.Duration, f func(context.Context, *Hold) error) error {
	return l.inside().TryDoFor(ctx, wait, func(ctx context.Context, h *grant.Hold) error { return f(ctx, (*Hold)(h)) })
}

// Attach goes on with a hold that [Hold.Detach] has ended, on this client or another one. The token stays, and the
// lease is renewed on the terms of this lock. Attach does not wait for the lock. While Redis is away it is sent again
// until ctx ends.
//
// It returns [ErrNotHeld] if the lock is gone: another Attach of the text was first, the time was over, or the lock
// was taken away. So of many calls with one text, one gets the lock. It returns [ErrLost] if the lease was over before
// the answer came, and [ErrInvalid] for a text that is malformed, or of another name, key prefix or half. If ctx ends
// before Redis has answered, Attach gives back what it may have taken.
func (l *Lock) Attach(ctx context.Context, text string) (*Hold, error) {
	h, err := l.inside().Attach(ctx, text)
	return (*Hold)(h), err
}

// ForceUnlock takes the lock away from its holder, grants it to the next waiter, and reports whether it was held. It
// is sent once. Without an answer the error matches [ErrUnknownOutcome]. The hold is lost as soon as its client hears
// of it: until then two holders may believe that they have the lock.
//
// For a day Redis keeps who did it, with the note of ctx ([WithNote]) as the reason. The holder's client logs it, and
// Inspect has it as State.Forced. A client [WithoutRecord] tells nothing.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) { return l.inside().ForceUnlock(ctx) }

// ForceUnlockToken is [Lock.ForceUnlock] for a holder that [Lock.Inspect] has shown: the holder with this Token,
// or 0 for a holder without a token. If another holder has the lock by now, it changes nothing, and returns false. A
// negative token is [ErrInvalid].
func (l *Lock) ForceUnlockToken(ctx context.Context, token int64) (bool, error) {
	return l.inside().ForceUnlockToken(ctx, token)
}

// Inspect returns who holds the lock, and who waits for it in Redis. It changes nothing. It sends one command, and one
// more for what clients tell of themselves. If Redis does not answer, it returns [ErrUnavailable], joined with the
// error of ctx if that has ended.
func (l *Lock) Inspect(ctx context.Context) (State, error) {
	s, err := l.inside().Inspect(ctx)
	state := State{Holder: holderOf(s.Holder), Readers: s.Readers, Waiting: s.Waiting, Forced: Identity(s.Forced)}
	for _, w := range s.Waiters {
		state.Waiters = append(state.Waiters, Waiter{Identity(w.Party), w.Owner, w.Mine, Mode(w.Mode), w.Permits})
	}
	return state, err
}
