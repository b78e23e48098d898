package look

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
)

// The connection and the question have a timer each. The error is the same whichever is first.
func TestAnswered(t *testing.T) {
	for _, early := range []error{context.DeadlineExceeded, fmt.Errorf("read: %w", os.ErrDeadlineExceeded)} {
		err := answered(t.Context(), func(context.Context) error { return early })
		require.ErrorIs(t, err, latchkey.ErrUnavailable)
		require.ErrorContains(t, err, "no answer for 2s")
	}
	require.NoError(t, answered(t.Context(), func(context.Context) error { return nil }))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, context.DeadlineExceeded, answered(ended, func(context.Context) error { return context.DeadlineExceeded }))
}
