//go:build !unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// untilSignal returns a context that ends when somebody interrupts the process. What it runs is interrupted
// with it.
func untilSignal(ctx context.Context) (context.Context, func()) {
	return signal.NotifyContext(ctx, os.Interrupt)
}

// statusOfCause is that of a process whose wait was ended by a signal.
func statusOfCause(context.Context) int { return statusSignal + 2 } // of an interrupt

// supervise runs a command, and returns its status when it has ended. When ctx ends it is killed: here no
// process can be asked to end.
func supervise(ctx context.Context, _ func(), command, env []string, _ time.Duration, _ func() time.Duration) (status int, err error) {
	child := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // it is what this is for
	child.Stdin, child.Stdout, child.Stderr, child.Env = os.Stdin, os.Stdout, os.Stderr, env
	err = child.Run()
	if child.ProcessState != nil {
		return child.ProcessState.ExitCode(), nil
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return 0, exit(statusNotFound, "%w", err)
	}
	return 0, exit(statusNotRunnable, "%w", err)
}

// stand is what a guard does: here none is started.
func stand(io.Reader, time.Duration) {}

// become is what a process does that waits for its start: here none is started.
func become(int, string, []string) error {
	return exit(statusUsage, "there is no sub-command start here")
}

// runAsInit is what the first process of a container does: here there is none.
func runAsInit() (int, error) { return statusUsage, errors.New("there is no first process here") }
