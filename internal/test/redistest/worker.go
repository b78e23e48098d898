package redistest

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mode names the variable that tells a worker what to do.
const mode = "LATCHKEY_TEST_WORKER"

// Mode returns what a worker is to do, in words; nil in the test itself. A worker ends when the test that
// started it does.
func Mode() []string {
	text := os.Getenv(mode)
	if text == "" {
		return nil
	}
	go func() {
		for scanner := bufio.NewScanner(os.Stdin); scanner.Scan(); { // until the test that started us is gone
			told <- scanner.Text()
		}
		os.Exit(0)
	}()
	return strings.Fields(text)
}

// told has what a worker was told and has not asked for. No test tells a worker more than that: its reader
// must not stop, or the worker would outlive its test.
var told = make(chan string, 100)

// Told returns, in a worker, the next line that its test has told it: see [Worker.Tell].
func Told() string { return <-told }

// Worker is the test binary in a process of its own, so that it can be killed and stopped.
type Worker struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser // closed with this process
	lines chan string
	once  sync.Once
	left  []string // lines that the test has not read, not all; set by Kill
}

// StartWorker runs the test binary again, whose TestMain asks for its [Mode].
func StartWorker(t testing.TB, words string, env ...string) *Worker {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), mode+"="+words), env...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	w := &Worker{cmd: cmd, stdin: stdin, lines: make(chan string, 100_000)}
	go func() {
		defer close(w.lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			w.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		w.Kill()
		if t.Failed() { // it may have said why
			t.Logf("worker %q wrote, and nobody read: %q", words, w.left)
		}
	})
	return w
}

// RunWorker is StartWorker for one that ends by itself, within a minute. It returns all that it wrote, and
// how it ended.
func RunWorker(t testing.TB, words string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), mode+"="+words)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer func() { _ = stdin.Close() }()
	text, err := cmd.CombinedOutput()
	require.NoError(t, ctx.Err(), "it did not end, and wrote %q", text)
	return string(text), err
}

// PID is that of its process.
func (w *Worker) PID() int { return w.cmd.Process.Pid }

// Kill ends it as kill -9 does, and returns once it is gone.
func (w *Worker) Kill() {
	w.once.Do(func() {
		_ = w.cmd.Process.Kill()    // it may have ended
		for line := range w.lines { // until the pipe is closed, which Wait must not be called before
			if len(w.left) < 10 {
				w.left = append(w.left, line)
			}
		}
		_ = w.cmd.Wait()
	})
}

// Signal sends it a signal. [Stop] is for a worker that runs: when Signal returns, none of its threads does.
func (w *Worker) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	signal(t, w.cmd.Process, s)
}

// signal sends a child a signal, and waits until it has stopped if that is what it shall do. It must run
// then.
func signal(t testing.TB, child *os.Process, s syscall.Signal) {
	t.Helper()
	require.NoError(t, child.Signal(s))
	if s == Stop {
		require.NoError(t, awaitStopped(child.Pid))
	}
}

// Tell sends it a line, also while it is stopped: see [Told].
func (w *Worker) Tell(t testing.TB, line string) {
	t.Helper()
	_, err := io.WriteString(w.stdin, line+"\n")
	require.NoError(t, err)
}

// Ends waits until the process has ended by itself, with that exit code.
func (w *Worker) Ends(t testing.TB, code int) {
	t.Helper()
	w.once.Do(func() {
		for range w.lines { // until the pipe is closed
		}
		_ = w.cmd.Wait() // the code tells
	})
	require.Equal(t, code, w.cmd.ProcessState.ExitCode())
}

// Lines are what it prints, for a test that does not know which line comes next.
func (w *Worker) Lines() <-chan string { return w.lines }

// Next returns the words of the next line that it prints, after the first one, which is given.
func (w *Worker) Next(t testing.TB, word string) []string {
	t.Helper()
	select {
	case line, ok := <-w.lines:
		require.True(t, ok, "the worker ended")
		fields := strings.Fields(line)
		require.Equal(t, word, fields[0], line)
		return fields[1:]
	case <-time.After(time.Minute):
		require.FailNow(t, "the worker says nothing")
		return nil
	}
}
