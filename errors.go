package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
)

// The errors of this module, for errors.Is. They come wrapped with the name of the primitive, and often
// joined with a cause. Their text is one line that begins with "latchkey: ". An error matches
// context.Canceled or context.DeadlineExceeded only when the caller's context has ended: timers of this
// module and of rueidis do not match.
var (
	// ErrNotAcquired is returned by TryLock when another process or goroutine holds the lock or is next, and by
	// TryLockFor when its time is over before the caller's context.
	ErrNotAcquired = fail.ErrNotAcquired
	// ErrNotHeld is returned by the second Unlock of a hold, and by that of no hold at all.
	ErrNotHeld = fail.ErrNotHeld
	// ErrLost says that a hold ended without a release: its lease could not be renewed in time, or Redis says
	// that the lock is another owner's, or free. It is the cause of the hold's context.
	ErrLost = fail.ErrLost
	// ErrReleased is the cause of a hold's context after Unlock.
	ErrReleased = fail.ErrReleased
	// ErrReentered is returned by Lock, under WithoutReentry, for a context that holds the lock already.
	ErrReentered = fail.ErrReentered
	// ErrClosed is returned after Close or Shutdown, and by the calls that they end.
	ErrClosed = fail.ErrClosed
	// ErrTooManyWaiters is returned instead of waiting with more than WithMaxWaiters others.
	ErrTooManyWaiters = fail.ErrTooManyWaiters
	// ErrWrongType says that a key holds data that is not of this primitive. The text says which key, and what
	// it holds instead of what. The data is left as it is.
	ErrWrongType = fail.ErrWrongType
	// ErrUnavailable says that Redis did not answer, or refused to serve for now. A caller whose context ends
	// while Redis is well does not get it. Redis is taken for silent when no answer has come for 50 ms, also
	// while a connection is being dialled, as the first one of a client that was given to Wrap. An error that
	// names a mistake in the configuration, as a wrong password or a certificate that is not accepted, does not
	// match it: to try again does not help.
	ErrUnavailable = fail.ErrUnavailable
	// ErrUnknownOutcome says that a command got no answer, so it may or may not have been done: an Unlock, a
	// ForceUnlock, a change of permits or of a latch.
	ErrUnknownOutcome = fail.ErrUnknownOutcome
	// ErrDeadlock is returned under WithDeadlockCheck by a wait that could never end. The text has the circle.
	ErrDeadlock = fail.ErrDeadlock
	// ErrNotReplicated is returned instead of a hold that fewer replicas have than WithReplicas asks for.
	ErrNotReplicated = fail.ErrNotReplicated
	// ErrNotRun is matched by the error of a Do, TryDo or TryDoFor whose function never ran, because the lock was
	// not acquired. The error also says why. Nothing was done, so it is safe to do it again. An error of Do that
	// does not match ErrNotRun is the function's own, or ErrLost.
	ErrNotRun = hold.ErrNotRun
	// ErrInvalid says that an argument or option is out of range. Nothing was done.
	ErrInvalid = fail.ErrInvalid
)
