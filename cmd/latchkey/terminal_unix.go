//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is that of a file, if it is one.
type terminal struct{ fd int }

func (t terminal) is() bool { return term.IsTerminal(t.fd) }

// give makes a group that of the terminal: it gets what is typed.
func (t terminal) give(group int) {
	signal.Ignore(syscall.SIGTTOU) // which is sent to whoever does this in the background
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

// isOurs reports whether our group is that of the terminal.
func (t terminal) isOurs() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// suspend stops this process as well when what runs in the terminal was stopped, as by Ctrl-Z: the shell
// waits for this one. It returns when the shell lets it go on, in the foreground or not, and with it the
// group. Nothing is renewed meanwhile, so the hold is lost when the lease is over.
func (t terminal) suspend(group int) {
	if !t.is() {
		return
	}
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	t.give(syscall.Getpgrp())
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	<-goesOn // the threads of a process need not stop at once
	if t.isOurs() {
		t.give(group)
	}
	_ = syscall.Kill(-group, syscall.SIGCONT)
}
