//go:build unix

package main

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Why a name does not move is said in words: who holds and renews, who waits and is there, and what may be done.
func TestExplain(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	explain := func(args ...string) string {
		status, out := runCommand(t, s.URL(), append([]string{"explain", "a job"}, args...)...)
		require.Zero(t, status, out)
		return out
	}
	out := explain()
	require.Contains(t, out, "It is free.\nNo process waits for it in Redis.\nThere is nothing to wait for.\n")

	file := pids{filepath.Join(t.TempDir(), "pids")}
	holder := begin(t, s.URL(), "lock", "--lease", "3s", "a job", "--", "sh", "-c", "echo $$ >"+file.file+"; exec sleep 60")
	file.await(t, 1)
	waiter := begin(t, s.URL(), "lock", "a job", "--", "true")
	l := lockAt(t, s.URL(), "a job")
	require.Eventually(t, func() bool {
		state, err := l.Inspect(context.Background())
		return err == nil && state.Waiting == 1 && state.Holder.PID > 0 && state.Waiters[0].PID > 0
	}, limit, time.Millisecond)
	out = explain("--watch", "1m")
	require.Regexp(t, `(?m)^It is held by process \d+ on .* \(latchkey lock sh\), for .*, to do "sh"\.$`, out)
	require.Contains(t, out, "\nIts process is connected.\nIt renews its lease. ")
	require.Regexp(t, `(?m)^1 wait\. The first is process \d+ on .* \(latchkey lock true\)`, out)
	require.Contains(t, out, "Nothing ends by itself while that process renews")
	require.Regexp(t, `(?m)^  take it away: +latchkey unlock --force --token \d{16} 'a job', when you know`, out)

	require.NoError(t, holder.Process.Signal(syscall.SIGSTOP))
	out = explain("--watch", "0")
	require.Contains(t, out, " of its lease is left.")
	require.Regexp(t, `(?m)^Its lease ends in .*s, unless it is renewed\. Then the next one gets it\.$`, out)
	require.Zero(t, waiter.status(t), waiter.errors.String())
}

// What has no holders says how far it is.
func TestExplainLatch(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	status, out := runCommand(t, s.URL(), "latch", "set", "deploy", "2")
	require.Zero(t, status, out)
	status, out = runCommand(t, s.URL(), "explain", "deploy")
	require.Zero(t, status, out)
	require.Equal(t, "deploy: latch, shut, 2 to count\nIts waiters go on when so many have counted. latchkey latch show says who has.\n", out)
}
