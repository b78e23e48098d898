package redistest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A server whose port is another one's does not start, although that one answers there.
func TestPortOfAnother(t *testing.T) {
	first := NewProcess(t)
	second := &Server{Addr: first.Addr, dir: t.TempDir()}
	require.False(t, second.launch())
	require.Nil(t, second.process, "it has ended")
	require.True(t, first.answers())
	first.Kill()
	t.Cleanup(second.kill)
	require.True(t, second.launch())
}

// The port of a server that was killed is no other test's until the test has ended: its clients dial it again.
func TestPortOfTheKilled(t *testing.T) {
	var addr string
	t.Run("while the test runs", func(t *testing.T) {
		s := NewProcess(t)
		addr = s.Addr
		s.Kill()
		require.Nil(t, reserve(addr))
	})
	again := reserve(addr)
	require.NotNil(t, again)
	require.NoError(t, again.Close())
}
