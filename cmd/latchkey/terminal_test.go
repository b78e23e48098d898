//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// inShell runs a shell on a terminal. types types keys, and waits until the terminal has shown a text so
// often since the last time.
func inShell(t *testing.T, url string) (types func(keys, text string, times int)) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash, whose job control this is about")
	}
	folder := t.TempDir()
	path, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(path, filepath.Join(folder, "latchkey")))
	shell := exec.Command(bash, "--norc", "--noprofile", "-i") //nolint:noctx // it is killed below
	shell.Env = append(os.Environ(), asCommand+"=1", "LATCHKEY_REDIS="+url, "GOCOVERDIR="+t.TempDir(), "PS1=ready> ", "PATH="+folder+":"+os.Getenv("PATH"))
	tty, err := pty.Start(shell)
	require.NoError(t, err)
	var screen output
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := tty.Read(buffer)
			_, _ = screen.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = shell.Process.Kill()
		_ = shell.Wait()
		_ = tty.Close()
		<-read
	})
	shown := 0
	return func(keys, text string, times int) {
		t.Helper()
		_, err := tty.WriteString(keys)
		require.NoError(t, err)
		deadline := time.After(limit)
		for strings.Count(screen.String()[shown:], text) < times {
			select {
			case <-deadline:
				t.Fatalf("%q shows no %q: %q", keys, text, screen.String())
			case <-time.After(time.Millisecond):
			}
		}
		shown = len(screen.String())
	}
}

// On a terminal the command gets what is typed. Ctrl-Z gives the terminal back to the shell, and fg goes on.
// Ctrl-C ends the command, and the lock is given back.
func TestLockOnATerminal(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	types := inShell(t, url)
	types("latchkey lock job -- sh -c 'echo be; echo gun; exec cat'\n", "gun\r\n", 1)
	types("one\n", "one\r\n", 2) // the terminal's, and the command's
	status, out := runCommand(t, url, "lock", "--try", "job", "--", "true")
	require.Equal(t, statusNotAcquired, status, out)
	types("\x1a", "ready> ", 1)
	types("fg\n", "cat'\r\n", 1)
	types("two\n", "two\r\n", 2)
	types("\x03", "ready> ", 1)
	types("echo status=$?\n", "status=130", 1)
	requireFree(t, url, "job")
}

// A command leaves the terminal to others that want it: to the shell when it runs in the background, and to what
// reads its output.
func TestLockLeavesTheTerminal(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	types := inShell(t, url)
	folder := t.TempDir()
	background, piped := pids{filepath.Join(folder, "background")}, pids{filepath.Join(folder, "piped")}
	types("latchkey lock one -- sh -c 'echo $$ >"+background.file+"; exec sleep 60' &\n", "ready> ", 1)
	background.await(t, 1)
	types("echo he''re\n", "here\r\n", 1)
	types("latchkey lock two -- sh -c 'echo $$ >"+piped.file+"; exec sleep 60' | (read word </dev/tty; echo read $word)\n", "", 0)
	all := piped.await(t, 1)
	types("some\n", "read some\r\n", 1)
	types("\x03", "ready> ", 1)
	requireGone(t, all)
	requireFree(t, url, "two")
	types("kill %1; wait %1; echo status=$?\n", "status=143", 1)
	requireFree(t, url, "one")
}

// What the terminal stops has ended when another process holds, as after any stop: also a command that ignores a TERM.
func TestLockStoppedByTheTerminal(t *testing.T) {
	t.Parallel()
	s := redistest.New(t)
	types := inShell(t, s.URL())
	file := pids{filepath.Join(t.TempDir(), "pids")}
	types("latchkey lock --lease 3s job -- sh -c 'trap \"\" TERM; echo $$ >"+file.file+"; exec sleep 60' &\n", "ready> ", 1)
	all := file.await(t, 1)
	l := lockAt(t, s.URL(), "job")
	types("kill -TTIN %1\n", "ready> ", 1)
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	for _, pid := range all {
		require.True(t, errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid), "%d runs beside the next holder", pid)
	}
	require.NoError(t, h.Unlock(t.Context()))
}

// On a terminal unlock asks.
func TestUnlockAsks(t *testing.T) {
	t.Parallel()
	url := redistest.New(t).URL()
	file := pids{filepath.Join(t.TempDir(), "pids")}
	holder := begin(t, url, "lock", "job", "--", "sh", "-c", "echo $$ >"+file.file+"; exec sleep 60")
	file.await(t, 1)
	types := inShell(t, url)
	types("latchkey unlock --force job\n", "Take it away? [y/N] ", 1)
	types("\n", "nothing was done", 1)
	types("echo status=$?\n", "status=75", 1)
	types("latchkey unlock --force job\n", "Take it away? [y/N] ", 1)
	types("yes\n", "it was taken away", 1)
	require.Equal(t, statusLost, holder.status(t))
}
