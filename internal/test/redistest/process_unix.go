//go:build !windows

package redistest

import (
	"os"
	"syscall"
	"time"
)

// The signals that stop a process, and have it go on.
const (
	Stop     = syscall.SIGSTOP
	Continue = syscall.SIGCONT
)

// awaitStopped waits until a child that was sent [Stop], and ran, has stopped. The signal only begins that:
// the thread of the child that takes it stops the others when it runs, and until then these go on. It fails
// when the child ends instead.
func awaitStopped(pid int) error {
	var status syscall.WaitStatus
	for {
		switch _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); {
		case err == nil && (status.Exited() || status.Signaled()): // BSD calls what SIGSTOP stops not stopped
			return os.ErrProcessDone
		case err != syscall.EINTR:
			return err
		}
	}
}

// Alive says whether there is such a process. One that has ended counts until its parent has asked for its
// end.
func Alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// CPU is the time that processors have spent on this process, for itself and inside the kernel.
func CPU() time.Duration { return spent(syscall.RUSAGE_SELF) }

// allCPU adds to CPU what its children have spent that have ended.
func allCPU() time.Duration { return CPU() + spent(syscall.RUSAGE_CHILDREN) }

func spent(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		panic(err) // only an address that is wrong makes it fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
