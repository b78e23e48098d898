//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey"
)

// passed are the signals that a command gets in place of us.
var passed = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT}

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

// looks is how often it is looked whether what a command has started has ended, and how long the lease lasts.
const looks = 20 * time.Millisecond

// errEnding is why a command was ended whose lease was about to end.
var errEnding = fmt.Errorf("%w: COMMAND was told to end before the lease does", latchkey.ErrLost)

// errNoGuard is why a command was ended whose guard has ended.
var errNoGuard = fmt.Errorf("%w: the guard of COMMAND was ended, and COMMAND with it", latchkey.ErrLost)

// supervise runs a command in a process group of its own, and returns its status when all processes of the group have
// ended. They get a TERM when a signal says so, and a KILL after the grace. They get a TERM a third of the lease before
// its end, or later if the grace is less, and a KILL shortly before that end, at which another process may hold: see
// ending. A guard does the same, should this process be stopped or killed. left is how long the lease lasts; ctx ends with it, or when what is held
// was taken away.
//
// It calls disarm once it hears the signals itself. err is why the command was not started, or was ended.
func supervise(ctx context.Context, disarm func(), command, env []string, grace time.Duration, left func() time.Duration) (status int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	disarm()
	path, err := exec.LookPath(command[0])
	if err != nil {
		return 0, exit(statusOfStart(err), "%w", err)
	}
	s := supervisor{ends: ending{grace: grace}, left: left, tty: terminal{int(os.Stdin.Fd())}}
	theirs := inherited()
	for _, fd := range theirs { // the guard outlives the command
		_ = keepOpen(fd, false)
	}
	if s.guard, err = newGuard(grace); err != nil {
		return 0, exit(statusNotRunnable, "%w", err)
	}
	defer s.guard.dismiss()
	for _, fd := range theirs {
		_ = keepOpen(fd, true)
	}
	child, ready, start, err := waiting(path, command)
	if err != nil {
		return 0, exit(statusNotRunnable, "%w", err)
	}
	defer start.Close() //nolint:errcheck // nothing was written that could be lost
	child.Stdin, child.Stdout, child.Stderr, child.Env = os.Stdin, os.Stdout, os.Stderr, env
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = child.Start()
	_ = ready.Close()
	if err != nil {
		return 0, exit(statusNotRunnable, "%w", err)
	}
	s.group = child.Process.Pid
	if err := s.guard.watch(s.group, left); err != nil { // it has ended, and so does what waits when start is closed
		return 0, exit(statusNotRunnable, "the guard of COMMAND has ended: %w", err)
	}
	_, _ = start.Write([]byte{'\n'})
	exited := make(chan syscall.WaitStatus, 1)
	go func() { exited <- await(s.group, func(by syscall.Signal) { s.tty.stopped(s.group, by) }) }()
	ended := s.end(ctx, exited, signals)
	_ = child.Process.Release()
	s.tty.takeBack(s.group)
	if ended.Signaled() {
		return statusSignal + int(ended.Signal()), s.why
	}
	return ended.ExitStatus(), s.why
}

// await returns the status of a child when it has ended. It calls stopped each time when a signal has stopped it.
func await(child int, stopped func(by syscall.Signal)) (s syscall.WaitStatus) {
	for {
		_, err := syscall.Wait4(child, &s, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err == nil && s.Stopped():
			stopped(s.StopSignal())
		default:
			return s
		}
	}
}

// supervisor is what runs beside a command.
type supervisor struct {
	group int
	guard *guard
	tty   terminal
	ends  ending
	left  func() time.Duration

	killed <-chan time.Time // when the grace is over; nil: the group was not told to end
	why    error            // it was ended without a signal
}

// ask sends a signal to the group. After all but those for users it must end within the grace.
func (s *supervisor) ask(by syscall.Signal) {
	_ = syscall.Kill(-s.group, by)              // they may have ended
	_ = syscall.Kill(-s.group, syscall.SIGCONT) // else one that is stopped does not hear it
	if s.killed == nil && by != syscall.SIGUSR1 && by != syscall.SIGUSR2 {
		s.killed = time.After(s.ends.grace)
	}
}

// stop has the group end because of an error.
func (s *supervisor) stop(why error) {
	if s.why == nil {
		s.why = why
		s.guard.tell("asked")
		s.ask(syscall.SIGTERM)
	}
}

// pass hands on a signal.
func (s *supervisor) pass(by syscall.Signal, interrupted bool) {
	switch {
	case by == syscall.SIGTSTP, by == syscall.SIGCONT, by == syscall.SIGINT && !interrupted: // a command may go on after one
		_ = syscall.Kill(-s.group, by)
	case by == syscall.SIGINT:
		s.ask(syscall.SIGTERM)
	default:
		s.ask(by)
	}
}

// buried is how long those that were killed are waited for. What is left after that has ended, and its parent
// does not ask for its status.
const buried = time.Second

// end returns the status of the command when it and its group have ended.
func (s *supervisor) end(ctx context.Context, exited <-chan syscall.WaitStatus, signals <-chan os.Signal) (status syscall.WaitStatus) {
	lost, unguarded := ctx.Done(), s.guard.gone
	var over <-chan time.Time
	look := time.NewTicker(looks)
	defer look.Stop()
	ended, interrupted := exited, false
	kill := func() {
		_ = syscall.Kill(-s.group, syscall.SIGKILL)
		over = time.After(buried)
	}
	for {
		select {
		case status = <-ended:
			ended = nil
			if status.Signaled() && s.why == nil && s.killed == nil && s.left() <= s.ends.margin() {
				s.why = errEnding // the guard was faster
			}
			if alive(s.group) {
				s.ask(syscall.SIGTERM) // what it has left behind runs no longer than the lock is held
			}
		case <-look.C:
			left := s.guard.extend(s.left)
			s.ends.saw(left)
			if left <= s.ends.margin() && lost != nil {
				s.stop(errEnding)
			}
			if left <= s.ends.lead() && over == nil {
				kill()
			}
		case <-lost: // another process may hold by now
			lost = nil
			kill()
		case <-unguarded:
			unguarded = nil
			s.stop(errNoGuard)
		case <-s.killed:
			kill()
		case <-over:
			if ended == nil {
				return status
			}
			over = time.After(buried)
		case got := <-signals:
			by := got.(syscall.Signal)
			s.pass(by, interrupted)
			interrupted = interrupted || by == syscall.SIGINT
		}
		if ended == nil && !alive(s.group) {
			return status
		}
	}
}

// alive reports whether a process of the group runs.
func alive(group int) bool { return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }
