package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Subscriptions that reach another server than scripts do hear of no grant. A check says so.
func TestCheckFindsAnInboxElsewhere(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		here, elsewhere := s.Client(t), s.Beside(t).Client(t)
		c, err := core.Wrap(here, elsewhere, session.DefaultOptions())
		require.NoError(t, err)
		defer closeNow(c)
		err = c.Check(t.Context())
		require.ErrorIs(t, err, fail.ErrUnavailable)
		require.ErrorContains(t, err, "scripts see no subscriber of the inbox")
		same, err := core.Wrap(here, here, session.DefaultOptions())
		require.NoError(t, err)
		defer closeNow(same)
		require.NoError(t, same.Check(t.Context()))
	})
}
