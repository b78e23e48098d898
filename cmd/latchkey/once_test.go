//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// What the crontabs of several machines start runs once a tick.
func TestOnceEvery(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	plain := s.Client(t)
	file := filepath.Join(t.TempDir(), "ran")
	for tick := 1; tick <= 3; tick++ {
		var all []*running
		for range 6 {
			all = append(all, begin(t, s.URL(), "once", "report", "--every", "4s", "--", "sh", "-c", "echo ran >>"+file+"; sleep 0.2; exit 3"))
		}
		failures := 0
		for _, r := range all {
			if status := r.status(t); status != 0 {
				require.Equal(t, 3, status, r.errors.String())
				failures++
			}
		}
		require.Equal(t, 1, failures, "the status of the command is that of the process that ran it")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, tick, strings.Count(string(text), "ran"))
		require.Eventually(t, func() bool { // until the next tick
			n, err := plain.Do(t.Context(), plain.B().Exists().Key("latchkey_once:{report}").Build()).AsInt64()
			return err == nil && n == 0
		}, limit, time.Millisecond)
	}
}

// When the machine that runs a tick dies another one runs it, that still waits.
func TestOnceEveryIsTakenOver(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	folder := t.TempDir()
	file := pids{filepath.Join(folder, "ran")}
	first := begin(t, url, "once", "report", "--every", "1m", "--lease", "300ms", "--grace", "10ms", "--", "sh", "-c", "echo $$ >>"+file.file+"; exec sleep 60")
	file.await(t, 1)
	second := begin(t, url, "once", "report", "--every", "1m", "--", "sh", "-c", "echo $$ >>"+file.file)
	require.NoError(t, first.Process.Kill())
	require.Zero(t, second.status(t), second.errors.String())
	file.await(t, 2)
}

// One that waits for another's tick gives up when that is over, and --try does at once.
func TestOnceEveryGivesUp(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	file := pids{filepath.Join(t.TempDir(), "ran")}
	first := begin(t, url, "once", "report", "--every", "2s", "--", "sh", "-c", "echo $$ >>"+file.file+"; exec sleep 60")
	file.await(t, 1)
	for _, args := range [][]string{{"--try"}, {}} {
		status, out := runCommand(t, url, append(append([]string{"once", "report", "--every", "2s"}, args...), "--", "sh", "-c", "echo $$ >>"+file.file)...)
		require.Zero(t, status, out)
		require.Empty(t, out)
	}
	file.await(t, 1)
	require.NoError(t, first.Process.Signal(os.Interrupt))
	require.Equal(t, 128+2, first.status(t))
}

// What runs once waits for the process that runs it, and runs it itself when that fails.
func TestOnceWaits(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	folder := t.TempDir()
	file, goOn := pids{filepath.Join(folder, "ran")}, filepath.Join(folder, "go")
	first := begin(t, url, "once", "migrate", "--", "sh", "-c", "echo $$ >>"+file.file+"; while ! test -e "+goOn+"; do sleep 0.01; done; exit 4")
	file.await(t, 1)
	status, out := runCommand(t, url, "once", "migrate", "--try", "--", "true")
	require.Equal(t, statusNotAcquired, status, out)
	second := begin(t, url, "once", "migrate", "--", "sh", "-c", "echo $$ >>"+file.file)
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	require.Equal(t, 4, first.status(t))
	require.Zero(t, second.status(t))
	file.await(t, 2)
	status, out = runCommand(t, url, "once", "migrate", "--", "false")
	require.Zero(t, status, out)
}

// When Redis is silent for half of a period nobody knows whether the job has run: that is no success.
func TestOnceEveryOfASilentServer(t *testing.T) {
	t.Parallel()
	s := redistest.NewProcess(t)
	first := begin(t, s.URL(), "once", "report", "--every", "10s", "--", "sleep", "60")
	c, err := rueidisclient.New(s.Option())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	l, err := rlock.New(c, "report")
	require.NoError(t, err)
	waiting := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			state, err := l.Inspect(context.Background())
			return err == nil && state.Holder.Owner != "" && state.Waiting == n
		}, limit, time.Millisecond)
	}
	waiting(0)
	second := begin(t, s.URL(), "once", "report", "--every", "10s", "--", "false")
	waiting(1)
	s.Stop(t)
	require.Equal(t, statusAway, second.status(t))
	s.Continue(t)
	require.NoError(t, first.Process.Kill())
}
