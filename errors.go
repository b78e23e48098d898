package latchkey

import (
	"errors"

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

// Error is the error of a call for one primitive, for errors.As. It adds to the sentinels, for errors.Is, what a
// program may want to know beside them.
//
//	var refused *latchkey.Error
//	if errors.As(err, &refused) && refused.Holder.Owner != "" {
//		return fmt.Errorf("try again later: %v is at it", refused.Holder)
//	}
//
// A TryLock or TryLockFor that is refused, and a Lock whose deadline passes, ask Redis after that who holds the lock:
// two trips, for 50 ms at most. A client asks so for a hundred refusals at once, and then for twenty a second. A lock
// that is granted costs nothing more. TryDo, multi-locks and all that stands on these say the same. So does the text:
//
//	latchkey: "orders:42": not acquired: held by importer on web-3 (pid 17) for 14s
type Error struct {
	Name   string // of the primitive, as it was given to New; empty for an error that is about none
	Holder Holder // who had the lock when the attempt was refused; the zero value: it is not known, or no lock
	Err    error  // why
	text   string
}

// Error is the text: one line that begins with "latchkey: " and the name. It is empty for an Error that this module has
// not made.
func (e *Error) Error() string { return e.text }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

var _ = fail.Publish(func(e *fail.Error, target any) bool {
	to, ok := target.(**Error)
	if !ok {
		return false
	}
	*to = &Error{Name: e.Name, Err: e.Err, text: e.Error()}
	var inner *fail.Error
	for of := e; of != nil; of, inner = inner, nil {
		if of.Holder.Owner != "" {
			(*to).Holder = holderOf(of.Holder)
			break
		}
		errors.As(of.Err, &inner)
	}
	return true
})
