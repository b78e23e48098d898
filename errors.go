package latchkey

import (
	"errors"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/hold"
)

// The errors of this module, for errors.Is; docs/reference.md says what to do. They come wrapped with the name of the
// primitive, and often joined with a cause. An error matches context.Canceled or context.DeadlineExceeded only if the
// caller's context has ended.
var (
	// ErrNotAcquired: the lock is held or another waiter is next, or the time of a TryLockFor is over.
	ErrNotAcquired = fail.ErrNotAcquired
	// ErrNotHeld: the hold was unlocked already, or is nil.
	ErrNotHeld = fail.ErrNotHeld
	// ErrLost: the hold ended without a release. Its lease was not renewed in time, or Redis says that the lock is free or
	// has another owner. It is the cause of the hold's context.
	ErrLost = fail.ErrLost
	// ErrReleased is the cause of a hold's context after Unlock.
	ErrReleased = fail.ErrReleased
	// ErrReentered: the context holds the lock already, under [WithoutReentry].
	ErrReentered = fail.ErrReentered
	// ErrClosed: Close or Shutdown was called.
	ErrClosed = fail.ErrClosed
	// ErrTooManyWaiters: [WithMaxWaiters] others wait.
	ErrTooManyWaiters = fail.ErrTooManyWaiters
	// ErrWrongType: a key holds data of something else. The text says which key, and what it holds.
	ErrWrongType = fail.ErrWrongType
	// ErrUnavailable: Redis did not answer for 50 ms, or refused to serve for now. A mistake in the configuration, as a wrong
	// password, does not match: a retry does not help.
	ErrUnavailable = fail.ErrUnavailable
	// ErrUnknownOutcome: a command got no answer, so it may have been done or not.
	ErrUnknownOutcome = fail.ErrUnknownOutcome
	// ErrDeadlock: the wait could never end, under [WithDeadlockCheck]. The text has the circle.
	ErrDeadlock = fail.ErrDeadlock
	// ErrNotReplicated: fewer replicas have the grant than [WithReplicas] asks for.
	ErrNotReplicated = fail.ErrNotReplicated
	// ErrNotRun: the function of a Do, TryDo or TryDoFor never ran.
	ErrNotRun = hold.ErrNotRun
	// ErrInvalid: an argument or option is out of range. Nothing was done.
	ErrInvalid = fail.ErrInvalid
)

// Error is the error of a call for one primitive, for errors.As.
//
//	var refused *latchkey.Error
//	if errors.As(err, &refused) && refused.Holder.Owner != "" {
//		return fmt.Errorf("try again later: %v is at it", refused.Holder)
//	}
//
// A refused TryLock or TryLockFor, and a Lock whose deadline passes, ask Redis who holds the lock, for 50 ms at most.
// A client asks a hundred times at once, and then twenty times a second. The text is as
//
//	latchkey: "orders:42": not acquired: held by importer on web-3 (pid 17) for 14s
type Error struct {
	Name   string // of the primitive; empty for an error that is about none
	Holder Holder // who had the lock when the attempt was refused; the zero value: not known
	Err    error  // why
	text   string
}

// Error is the text. It is empty for an Error that you have made.
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
