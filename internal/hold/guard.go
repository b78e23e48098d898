package hold

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lease"
)

// ErrNotRun is documented by the root package.
var ErrNotRun = errors.New("not run")

// notRun is the error of a Do whose function never ran. It matches the error of the acquire, and ErrNotRun.
type notRun struct{ error }

func (e notRun) Unwrap() error { return e.error }

func (e notRun) Is(target error) bool { return target == ErrNotRun }

// NotRun returns an error that matches err and ErrNotRun.
func NotRun(err error) error { return notRun{err} }

// ran is the error of a function that ran. It hides the ErrNotRun of another Do inside the function, because that
// ErrNotRun says nothing about this function.
type ran struct{ error }

func (e ran) Is(target error) bool { return target != ErrNotRun && errors.Is(e.error, target) }

func (e ran) As(target any) bool { return errors.As(e.error, target) }

// Ran returns the error of a function that ran, as its Do returns it.
func Ran(err error) error {
	if errors.Is(err, ErrNotRun) {
		return ran{err}
	}
	return err
}

// Handover is how long Do waits for the reply to its release. If Redis answers at all, it answers earlier: then the
// caller's next step finds the lock free. If Redis does not answer, it must not hold up a caller whose work is done.
const Handover = 100 * time.Millisecond

// Guarded is a hold, of one thing or of several.
type Guarded interface {
	Context() context.Context
	Err() error
	Unlock(ctx context.Context) error
}

// Guard runs f with the hold that was acquired, and releases the hold, also if f panics.
//
// f was alone if the hold could still be trusted when f ended. Then Guard returns f's result, whatever becomes of the
// release: a caller that took an error of the release for one of f would do the work again. The exception is an
// answer of Redis that this owner does not have the lock.
func Guard[H Guarded](ctx context.Context, hold H, err error, f func(context.Context, H) error) (result error) {
	if err != nil {
		return notRun{err}
	}
	defer func() {
		result = fail.Join(Ran(result), finish(ctx, hold))
	}()
	return f(hold.Context(), hold) //nolint:contextcheck // it is derived from the context of the acquire
}

// finish releases the hold after Do. It returns an error only if others may have held what the hold guards.
func finish(ctx context.Context, h Guarded) error {
	loss := h.Err()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), Handover)
	defer cancel()
	err := h.Unlock(limited)
	switch {
	case errors.Is(loss, fail.ErrLost):
		return loss
	case errors.Is(loss, fail.ErrClosed) && errors.Is(err, fail.ErrLost): // the lease was over before f was
		return err
	case errors.Is(err, ErrForced), errors.Is(err, lease.ErrGone): // Redis has just said so
		return err
	default:
		return nil // the tenure logs a later answer to the release
	}
}
