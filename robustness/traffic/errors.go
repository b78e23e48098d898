package traffic

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/robustness/faults"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
	"github.com/latchkey-go/latchkey/semaphore"
)

// resultOf says what an error of an attempt or of a command means. An error that is not expected is a
// violation.
func (w *worker) resultOf(c *client, what string, err error, also ...error) int64 {
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) // the caller's context
	switch {
	case err == nil:
		return witness.Done
	case errors.Is(err, latchkey.ErrUnknownOutcome) && ended:
		return witness.Unknown
	case errors.Is(err, latchkey.ErrUnknownOutcome):
		return w.ifFaults(witness.Unknown, what, err)
	case errors.Is(err, latchkey.ErrNotReplicated) && w.Replicated() && c != nil && c.what == bounded: // it is given back in a moment
		return witness.Unknown
	case errors.Is(err, latchkey.ErrTooManyWaiters) && c != nil && c.what == bounded:
		return witness.Refused
	case ended, errors.Is(err, latchkey.ErrNotAcquired), errors.Is(err, latchkey.ErrDeadlock): // of one inside another
		return witness.Refused
	case errors.Is(err, latchkey.ErrLost):
		return witness.Lost
	case errors.Is(err, latchkey.ErrClosed):
		if c != nil && !c.closing.Load() {
			w.violation("error", "%s: %v, of a client that is open", what, err)
		}
		return witness.Closed
	case errors.Is(err, latchkey.ErrUnavailable):
		return w.ifFaults(witness.Unknown, what, err)
	case slices.ContainsFunc(also, func(known error) bool { return errors.Is(err, known) }):
		return witness.Refused
	}
	for _, name := range w.Faults {
		for _, code := range faults.Named(name).Excuses.Errors {
			if strings.Contains(err.Error(), code) {
				return witness.Unknown
			}
		}
	}
	w.violation("error", "%s: %v", what, err)
	return witness.Unknown
}

// ifFaults is for errors that only something that fails explains.
func (w *worker) ifFaults(result int64, what string, err error) int64 {
	if w.Calm() {
		w.violation(plan.Unavailable, "%s: %v, and nothing had failed", what, err)
	}
	return result
}

// The errors of some primitives that a random program runs into.
var (
	ofLatches  = []error{countdown.ErrNotSet, countdown.ErrExpired, countdown.ErrDeleted, latchkey.ErrInvalid}
	ofBarriers = []error{barrier.ErrBroken, barrier.ErrForgotten}
	ofPermits  = []error{semaphore.ErrCapacity, semaphore.ErrNotSet}
)

// ofCounting are those of plain permits: somebody deletes those that change.
func ofCounting(o plan.Object) []error {
	if o.Changes {
		return []error{semaphore.ErrNotSet}
	}
	return nil
}
