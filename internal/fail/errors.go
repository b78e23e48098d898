// Package fail has the errors of the module as callers see them: the sentinels, each on one line with the
// module's prefix and the name of the primitive once, and what the refusal of a server means.
package fail

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// The sentinels of the root package, which documents them.
var (
	ErrNotAcquired    = errors.New("not acquired")
	ErrNotHeld        = errors.New("not held")
	ErrLost           = errors.New("lost")
	ErrReleased       = errors.New("released")
	ErrReentered      = errors.New("held by this context already")
	ErrClosed         = errors.New("client closed")
	ErrTooManyWaiters = errors.New("too many waiters, see WithMaxWaiters")
	ErrWrongType      = errors.New("key holds foreign data")
	ErrUnavailable    = errors.New("redis unavailable")
	ErrUnknownOutcome = errors.New("unknown outcome")
	ErrNotReplicated  = errors.New("not replicated")
	ErrInvalid        = errors.New("invalid argument")
	ErrDeadlock       = errors.New("deadlock")
)

// ErrMute refuses a primitive whose waiters must be told something. It matches ErrInvalid, and is not
// wrapped.
var ErrMute = Invalid("the client has no subscription, as WithoutPubSub says: only locks of packages spinlock and redlock can be used with it")

// ErrInterrupted says that nothing is wrong with Redis: the waiter has gone. No caller gets it.
var ErrInterrupted = errors.New("interrupted")

// Invalid returns an error that matches ErrInvalid, and says what is wrong with an argument. The function
// that returns it to the user wraps it.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// Unavailable returns an error that matches ErrUnavailable, and says why Redis is away or silent. It matches
// no context error: the caller's context has not ended because of that. why may be nil. Where why is a
// mistake in the configuration, the error names that, and does not match ErrUnavailable.
func Unavailable(why error) error {
	if why == nil {
		return ErrUnavailable
	}
	if errors.Is(why, ErrInvalid) {
		return lua.Quiet(why)
	}
	if mistake := diagnosis(why); mistake != "" {
		return fmt.Errorf("%s: %w", mistake, lua.Quiet(why))
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, lua.Quiet(why))
}

// ContextError is the error for a context that has ended: its error, and its cause if that says more.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// WithSentinel puts the sentinel before an error of the inner packages or of rueidis.
func WithSentinel(err error) error {
	switch {
	case errors.Is(err, lua.ErrFull):
		return ErrTooManyWaiters
	case errors.Is(err, lua.ErrNotSet), errors.Is(err, lua.ErrCapacity):
		return err
	case errors.Is(err, lua.ErrUnsettled):
		return Unavailable(err)
	case errors.Is(err, lua.ErrRange):
		return fmt.Errorf("%w: so many permits are %w", ErrInvalid, err)
	}
	switch lua.Classify(err) {
	case lua.WrongType:
		return fmt.Errorf("%w: %w", ErrWrongType, err)
	case lua.Refused, lua.NoAnswer:
		return Unavailable(err)
	default:
		return err
	}
}
