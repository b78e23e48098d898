package hold

import (
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/internal/fail"
)

// The reasons of losses that Redis tells.
var (
	// ErrNotOurs is one that the release found out.
	ErrNotOurs = errors.New("somebody else has it in Redis, or nobody")
	// ErrForced is one that another client wanted.
	ErrForced = errors.New("taken away by ForceUnlock or Delete")
)

// LossOf is the error of a hold that was lost for this reason, or whose client was closed.
func LossOf(reason error) error {
	if errors.Is(reason, fail.ErrClosed) {
		return fail.ErrClosed
	}
	return fmt.Errorf("%w: %w", fail.ErrLost, reason)
}
