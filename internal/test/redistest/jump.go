package redistest

import (
	_ "embed"
	bytes "encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

//go:embed clock/clock.c
var clockSource []byte

// NewJumping returns a redis-server whose clock [Server.Jump] sets. It needs a C compiler and a redis-server:
// what stands between the server and its clock is compiled for each test, which takes less than 0.1 s.
func NewJumping(t testing.TB, args ...string) *Server {
	t.Helper()
	RequireCompiler(t)
	dir := t.TempDir()
	source, library, shown := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so"), filepath.Join(dir, "offset")
	require.NoError(t, os.WriteFile(source, clockSource, 0o600))
	output, err := exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", library, source).CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.NoError(t, os.WriteFile(shown, make([]byte, 8), 0o600))
	return newServer(t, &Server{
		args: args, offset: shown, env: append(os.Environ(), "LD_PRELOAD="+library, "LATCHKEY_CLOCK="+shown),
	})
}

// RequireCompiler is [Require] for what needs a C compiler as well.
func RequireCompiler(t testing.TB) {
	t.Helper()
	Require(t)
	if _, err := exec.LookPath("cc"); err != nil {
		lacks(t, "a C compiler (cc)")
	}
}

// Jump sets the clock of the server forward by d, or back, as an administrator does who sets the time of its
// machine. The server sees it the next time it looks. It keeps what it was set by when it is started again.
func (s *Server) Jump(t testing.TB, d time.Duration) {
	t.Helper()
	s.ahead += d
	file, err := os.OpenFile(s.offset, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteAt(bytes.NativeEndian.AppendUint64(nil, uint64(s.ahead.Microseconds())), 0)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}
