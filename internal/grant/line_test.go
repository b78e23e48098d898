package grant_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Shutdown sends away those in line while one of the process still holds, and goes on to.
func TestShutdownDoesNotWaitInLine(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		l := newLock(t, c, "a", true)
		h := mustLock(t, l)
		var waiting []*redistest.Attempt[*grant.Hold]
		for n := range 3 {
			waiting = append(waiting, redistest.Begin(t, l.Lock))
			inLine(t, l, n+1)
		}
		stopped := make(chan error)
		go func() { stopped <- c.Shutdown(t.Context()) }()
		for _, a := range waiting {
			require.ErrorIs(t, a.Outcome(t), fail.ErrClosed)
		}
		require.NoError(t, h.Err(), "Shutdown waits for it")
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, <-stopped)
		clean(t, s.Client(t))
	})
}
