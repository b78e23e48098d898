//go:build unix

package main

import "syscall"

// canStop says that a process can be frozen here.
const canStop = true

func (p *process) stop() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
