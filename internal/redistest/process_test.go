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
