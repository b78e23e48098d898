package redistest

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that has an address is refused where time is virtual: a test that used it would wait for ever.
func TestNoKernelInABubble(t *testing.T) {
	Virtual(t, func(t *testing.T, _ *Server) {
		require.Panics(t, func() { NewEmbedded(t) })
		require.Panics(t, func() { newServer(t, &Server{}) })
	})
}

// Where time is virtual a server that is stopped answers late, one that was killed refuses connections, and one that
// was started again has nothing. A bound is judged.
func TestVirtual(t *testing.T) {
	VirtualPinged(t, func(t *testing.T, s *Server) {
		c := s.Client(t)
		set := func() error { return c.Do(t.Context(), c.B().Set().Key("k").Value("v").Build()).Error() }
		began := time.Now()
		require.NoError(t, set())
		s.Within(t, began, 2*trip)
		require.GreaterOrEqual(t, time.Since(began), 2*trip)

		s.Stop(t)
		time.AfterFunc(time.Second, func() { s.Continue(t) })
		began = time.Now()
		require.NoError(t, set())
		require.GreaterOrEqual(t, time.Since(began), time.Second)

		s.Kill()
		_, err := s.dial()
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		s.Start(t)
		n, err := c.Do(t.Context(), c.B().Dbsize().Build()).AsInt64()
		require.NoError(t, err)
		require.Zero(t, n)
	})
}
