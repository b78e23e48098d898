package barrier

import (
	"fmt"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// fateError is what a party's Await returns when this became of its generation. A generation that Redis
// does not know any more is not called broken: others may have gone on.
func fateError(fate lua.Fate) error {
	var why string
	switch fate {
	case lua.Done:
		return nil
	case lua.Cancelled:
		why = "a party gave up"
	case lua.Failed:
		why = "the action failed"
	case lua.LeaseOver:
		why = "the lease of a party is over"
	case lua.ArrivalLost:
		why = "an arrival was lost"
	case lua.Reset:
		why = "it was reset"
	default: // Lost; or Later: Redis is back at an earlier generation
		return ErrForgotten
	}
	return fmt.Errorf("%w: %s", ErrBroken, why)
}

// brokenBefore is the error of a party or member that comes to a barrier that is broken. The state may be a
// later one than the refusal, whose first reply was lost: then the barrier may have been reset in between.
func brokenBefore(r lua.Round) error {
	if r.Phase != lua.Broken {
		return fmt.Errorf("%w when it was asked, and reset since", ErrBroken)
	}
	return fmt.Errorf("%w, and not reset since", fateError(r.Fate(r.Generation)))
}
