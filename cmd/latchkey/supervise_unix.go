//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// passed are the signals that a command gets in place of us.
var passed = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// stopped is the cause of a wait that a signal has ended.
type stopped struct{ by syscall.Signal }

func (s stopped) Error() string { return s.by.String() }

// untilSignal returns a context that ends when somebody ends the process before disarm is called. A hold that
// is acquired with it goes on after that, whatever signals come.
func untilSignal(ctx context.Context) (waits context.Context, disarm func()) {
	waits, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	over := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			cancel(stopped{s.(syscall.Signal)})
		case <-over:
		}
	}()
	return waits, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(over)
	})
}

// statusOfCause is that of a process whose wait was ended by a signal.
func statusOfCause(ctx context.Context) int {
	var by stopped
	if errors.As(context.Cause(ctx), &by) {
		return statusSignal + int(by.by)
	}
	return statusAway
}

// looks is how often it is looked whether what a command has started has ended.
const looks = 20 * time.Millisecond

// supervise runs a command in a process group of its own, and returns its status when all processes of the
// group have ended. When ctx ends, or a signal says so, they get a TERM, and a KILL after the grace. A guard
// does the same should this process be killed, with a grace of its own: the lock lasts for the rest of its
// lease then.
//
// It calls disarm once it hears the signals itself.
func supervise(ctx context.Context, disarm func(), command, env []string, grace, orphaned time.Duration) (status int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	disarm()
	g, err := newGuard(orphaned)
	if err != nil {
		return 0, exit(statusNotRunnable, "%w", err)
	}
	defer g.dismiss()
	path, err := exec.LookPath(command[0])
	if err != nil {
		return 0, exit(statusOfStart(err), "%w", err)
	}
	child, start, err := waiting(path, command)
	if err != nil {
		return 0, exit(statusNotRunnable, "%w", err)
	}
	defer start.Close() //nolint:errcheck // nothing was written that could be lost
	child.Stdin, child.Stdout, child.Stderr, child.Env = os.Stdin, os.Stdout, os.Stderr, env
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	tty := terminal{int(os.Stdin.Fd())}
	if tty.is() { // the group of the command gets what is typed, as Ctrl-C
		child.SysProcAttr.Foreground, child.SysProcAttr.Ctty = true, tty.fd
		defer tty.give(syscall.Getpgrp())
	}
	if err := child.Start(); err != nil {
		return 0, exit(statusNotRunnable, "%w", err)
	}
	_ = child.ExtraFiles[0].Close()
	group := child.Process.Pid
	g.watch(group)
	_, _ = start.Write([]byte{'\n'})
	exited := make(chan syscall.WaitStatus, 1)
	go func() { exited <- await(group, func() { tty.suspend(group) }) }()
	s := end(ctx, group, exited, signals, grace)
	_ = child.Process.Release()
	if s.Signaled() {
		return statusSignal + int(s.Signal()), nil
	}
	return s.ExitStatus(), nil
}

// await returns the status of a child when it has ended. It calls stopped each time when it was stopped.
func await(child int, stopped func()) (s syscall.WaitStatus) {
	for {
		_, err := syscall.Wait4(child, &s, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err == nil && s.Stopped():
			stopped()
		default:
			return s
		}
	}
}

// reap asks for the status of those of the group that have become our children: in a container this process
// may be the first one. Until somebody asks, they look as if they ran.
func reap(group int) {
	for {
		if pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}

// buried is how long those that were killed are waited for. What is left after that has ended, and its parent
// does not ask for its status.
const buried = time.Second

// end returns the status of the command when it and its group have ended.
func end(ctx context.Context, group int, exited <-chan syscall.WaitStatus, signals <-chan os.Signal, grace time.Duration) (s syscall.WaitStatus) {
	lost := ctx.Done()
	var killed, over <-chan time.Time
	ask := func(by syscall.Signal) {
		_ = syscall.Kill(-group, by)              // they may have ended
		_ = syscall.Kill(-group, syscall.SIGCONT) // else one that is stopped does not hear it
		if killed == nil && by != syscall.SIGUSR1 && by != syscall.SIGUSR2 {
			killed = time.After(grace)
		}
	}
	look := time.NewTicker(looks)
	defer look.Stop()
	ended, interrupted := exited, false
	for {
		select {
		case s = <-ended:
			ended = nil
			if alive(group) {
				ask(syscall.SIGTERM) // what it has left behind runs no longer than the lock is held
			}
		case <-look.C:
		case <-lost:
			lost = nil
			ask(syscall.SIGTERM)
		case <-killed:
			_ = syscall.Kill(-group, syscall.SIGKILL)
			over = time.After(buried)
		case <-over:
			if ended == nil {
				return s
			}
			over = time.After(buried)
		case got := <-signals:
			switch by := got.(syscall.Signal); {
			case by == syscall.SIGINT && !interrupted: // a command may go on after one
				interrupted = true
				_ = syscall.Kill(-group, by)
			case by == syscall.SIGINT:
				ask(syscall.SIGTERM)
			default:
				ask(by)
			}
		}
		if ended == nil {
			if reap(group); !alive(group) {
				return s
			}
		}
	}
}

// alive reports whether a process of the group runs.
func alive(group int) bool { return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }
