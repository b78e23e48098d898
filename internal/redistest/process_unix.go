//go:build !windows

package redistest

import (
	"syscall"
	"time"
)

// The signals that stop a process, and have it go on.
const (
	Stop     = syscall.SIGSTOP
	Continue = syscall.SIGCONT
)

// Alive says whether there is such a process. One that has ended counts until its parent has asked for its
// end.
func Alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// CPU is the time that processors have spent on this process, for itself and inside the kernel.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only an address that is wrong makes it fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
