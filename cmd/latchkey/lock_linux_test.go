package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// The program may be replaced while it waits, as by a deploy.
func TestLockOfAProgramThatIsGone(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	path, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	gone := filepath.Join(t.TempDir(), "latchkey")
	require.NoError(t, os.WriteFile(gone, text, 0o700)) //nolint:gosec // a program
	l := lockAt(t, url, "job")
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	r := exec.CommandContext(t.Context(), gone, "lock", "job", "--", "echo", "ran")
	var out output
	r.Env, r.Stdout, r.Stderr = append(os.Environ(), asCommand+"=1", "LATCHKEY_REDIS="+url, "GOCOVERDIR="+t.TempDir()), &out, &out
	require.NoError(t, r.Start())
	require.Eventually(t, func() bool {
		state, err := l.Inspect(t.Context())
		return err == nil && state.Waiting == 1
	}, limit, time.Millisecond)
	require.NoError(t, os.Remove(gone))
	require.NoError(t, h.Unlock(t.Context()))
	require.NoError(t, r.Wait(), out.String())
	require.Equal(t, "ran\n", out.String())
}

// What outlives the lock around it is not inside of it any more.
func TestLockOutsideOfItself(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	path, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ran")
	outlives := "setsid sh -c 'touch " + file + ".begins; sleep 0.5; exec " + path + " lock gone -- touch " + file + "' >/dev/null 2>&1 &"
	status, out := runCommand(t, url, "lock", "gone", "--", "sh", "-c", outlives+" until test -e "+file+".begins; do sleep 0.02; done")
	require.Zero(t, status, out)
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, limit, time.Millisecond)
}
