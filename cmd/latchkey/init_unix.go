//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// runAsInit is what the first process of a container does. All processes there fall to it whose parent has ended, and
// stay until it has asked for their status. So it runs this program once more, passes signals on, and asks all.
func runAsInit() (status int, err error) {
	child, err := ourselves(os.Args[1:]...)
	if err != nil {
		return statusNotRunnable, err
	}
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if tty := (terminal{int(os.Stdin.Fd())}); tty.is() && tty.isOurs() {
		child.SysProcAttr.Foreground, child.SysProcAttr.Ctty = true, tty.fd
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passed...)
	if err := child.Start(); err != nil {
		return statusNotRunnable, err
	}
	go func() {
		for s := range signals {
			_ = child.Process.Signal(s)
		}
	}()
	for {
		var s syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &s, 0, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return statusNotRunnable, err
		case pid != child.Process.Pid:
		case s.Signaled():
			return statusSignal + int(s.Signal()), nil
		default:
			return s.ExitStatus(), nil
		}
	}
}
