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

// notRun is the error of a Do whose function never ran. It is the acquire's, and ErrNotRun beside it.
type notRun struct{ error }

func (e notRun) Unwrap() error { return e.error }

func (e notRun) Is(target error) bool { return target == ErrNotRun }

// NotRun is err, and ErrNotRun beside it.
func NotRun(err error) error { return notRun{err} }

// ran is an error of a function that ran. It hides the ErrNotRun of a Do inside the function, which is not
// about this one.
type ran struct{ error }

func (e ran) Is(target error) bool { return target != ErrNotRun && errors.Is(e.error, target) }

func (e ran) As(target any) bool { return errors.As(e.error, target) }

// Handover is how long Do waits for the reply to its release. A Redis that answers does so earlier: then
// whatever the caller does next finds the lock free. One that does not answer must not hold up a caller whose
// work is done.
const Handover = 100 * time.Millisecond

// Guarded is a hold, of one thing or of several.
type Guarded interface {
	Context() context.Context
	Err() error
	Unlock(ctx context.Context) error
}

// Guard runs f with what was acquired, and releases that, also when f panics.
//
// f was alone if its hold could still be trusted when it ended. Then f's result is the result, whatever
// becomes of the release: a caller that took its error for one of f would do the work again. Only an answer
// of Redis that this owner does not have the lock says otherwise.
func Guard[H Guarded](ctx context.Context, hold H, err error, f func(context.Context, H) error) (result error) {
	if err != nil {
		return notRun{err}
	}
	defer func() {
		if errors.Is(result, ErrNotRun) {
			result = ran{result}
		}
		result = fail.Join(result, finish(ctx, hold))
	}()
	return f(hold.Context(), hold) //nolint:contextcheck // it is derived from the context of the acquire
}

// finish releases after Do, and returns an error only when others may have held what was guarded.
func finish(ctx context.Context, h Guarded) error {
	loss := h.Err()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), Handover)
	defer cancel()
	err := h.Unlock(limited)
	switch {
	case errors.Is(loss, fail.ErrLost):
		return loss
	case errors.Is(err, ErrNotOurs), errors.Is(err, ErrForced), errors.Is(err, lease.ErrGone): // so Redis says, just now
		return err
	default:
		return nil // of what is not answered yet, the tenure tells the logger when it is
	}
}
