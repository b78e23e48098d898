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
func (t terminal) isOurs() bool { return t.has(syscall.Getpgrp()) }

// has reports whether the terminal is a group's.
func (t terminal) has(group int) bool {
	of, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && of == group
}

// takeBack gives the terminal to our group, if the other one has it.
func (t terminal) takeBack(group int) {
	if t.has(group) {
		t.give(syscall.Getpgrp())
	}
}

// stopped is called when a signal has stopped the group of the command. One that wants the terminal gets it, if it is
// ours: a command that does not, as one whose output a pager shows, leaves it to others. Otherwise this process stops
// as well, since the shell waits for it. It returns when the shell lets it go on, in the foreground or not, and with
// it the group. Nothing is renewed until then: the guard ends the command when the lease is over.
func (t terminal) stopped(group int, by syscall.Signal) {
	if !t.is() {
		return
	}
	wants := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	if wants && t.isOurs() {
		t.give(group)
		_ = syscall.Kill(-group, syscall.SIGCONT)
		return
	}
	wants = wants || t.has(group)
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	t.takeBack(group)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	<-goesOn // the threads of a process need not stop at once
	if wants && t.isOurs() {
		t.give(group)
	}
	_ = syscall.Kill(-group, syscall.SIGCONT)
}
