package hold

import (
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lease"
)

// The reasons of losses that come from Redis.
var (
	// ErrNotOurs is the reason of a loss that the release found out, in the words of one that a renewal found out.
	ErrNotOurs = fmt.Errorf("%w", lease.ErrGone)
	// ErrForced is the reason of a loss that another client wanted.
	ErrForced = errors.New("taken away by ForceUnlock or Delete")
	// ErrClosedAndLost is the loss of a hold whose client was closed, and whose lease was over before its release.
	ErrClosedAndLost = fmt.Errorf("%w: %w", fail.ErrLost, fail.ErrClosed)
)

// LossOf returns the error of a hold that was lost for reason, or whose client was closed.
func LossOf(reason error) error {
	if errors.Is(reason, fail.ErrClosed) {
		return fail.ErrClosed
	}
	return fmt.Errorf("%w: %w", fail.ErrLost, reason)
}
