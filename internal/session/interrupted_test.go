package session

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// Context errors of what was done inside, as of a dial that took too long, say nothing of the caller's
// context.
func TestInterruptedByTheCallerAlone(t *testing.T) {
	closing, shut := context.WithCancelCause(t.Context())
	c := &Client{Closing: closing}
	c.health[0] = &retry.Health{Context: t.Context(), Go: func(func()) {}, Down: func(retry.Outage) {}}
	r := &Target{Client: c}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NotErrorIs(t, r.Interrupted(ended, nil), fail.ErrUnavailable)
	c.health[0].Failed(fmt.Errorf("dial: %w", context.DeadlineExceeded), time.Now(), nil)
	err := r.Interrupted(ended, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, fail.ErrUnavailable)
	require.ErrorContains(t, err, "dial")
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	err = r.Interrupted(t.Context(), nil)
	require.ErrorIs(t, err, fail.ErrUnavailable)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	shut(fail.ErrClosed)
	require.Equal(t, fail.ErrClosed, r.Interrupted(t.Context(), nil))
}
