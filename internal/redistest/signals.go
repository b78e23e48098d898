//go:build !windows

package redistest

import "syscall"

// The signals that stop a process, and have it go on.
const (
	Stop     = syscall.SIGSTOP
	Continue = syscall.SIGCONT
)
