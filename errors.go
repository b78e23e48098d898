package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
)

// The errors of this module, for errors.Is. They come wrapped with the name of the primitive, and often joined with a
// cause. The text is one line that begins with "latchkey: ". An error matches context.Canceled or
// context.DeadlineExceeded only if the caller's context has ended.
var (
	// ErrNotAcquired is returned by TryLock if the lock is held, or another waiter is next, and by TryLockFor when its
	// time is over.
	ErrNotAcquired = fail.ErrNotAcquired
	// ErrNotHeld is returned by an Unlock of a hold that was unlocked already, or is nil.
	ErrNotHeld = fail.ErrNotHeld
	// ErrLost says that a hold ended without a release: its lease could not be renewed in time, or Redis says that the
	// lock is free or has another owner. It is the cause of the hold's context.
	ErrLost = fail.ErrLost
	// ErrReleased is the cause of a hold's context after Unlock.
	ErrReleased = fail.ErrReleased
	// ErrReentered is returned by Lock, under [WithoutReentry], for a context that holds the lock already.
	ErrReentered = fail.ErrReentered
	// ErrClosed is returned after Close or Shutdown, and by the calls that they end.
	ErrClosed = fail.ErrClosed
	// ErrTooManyWaiters is returned if [WithMaxWaiters] others wait already.
	ErrTooManyWaiters = fail.ErrTooManyWaiters
	// ErrWrongType says that a key holds data of something else. The text says which key, and what it holds. The data
	// stays as it is.
	ErrWrongType = fail.ErrWrongType
	// ErrUnavailable says that Redis did not answer, or refused to serve for now. Redis counts as silent after 50 ms
	// without an answer, also while a connection is dialled. A mistake in the configuration, as a wrong password or a
	// bad certificate, does not match: a retry does not help.
	ErrUnavailable = fail.ErrUnavailable
	// ErrUnknownOutcome says that a command got no answer, so it may have been done or not: an Unlock, a ForceUnlock,
	// a change of permits or of a latch.
	ErrUnknownOutcome = fail.ErrUnknownOutcome
	// ErrDeadlock is returned under [WithDeadlockCheck] by a wait that could never end. The text has the circle.
	ErrDeadlock = fail.ErrDeadlock
	// ErrNotReplicated is returned if fewer replicas have a grant than [WithReplicas] asks for.
	ErrNotReplicated = fail.ErrNotReplicated
	// ErrNotRun matches the error of a Do, TryDo or TryDoFor whose function never ran, because the lock was not
	// acquired. The error also says why. Nothing was done, so you may do it again.
	ErrNotRun = hold.ErrNotRun
	// ErrInvalid says that an argument or option is out of range. Nothing was done.
	ErrInvalid = fail.ErrInvalid
)
