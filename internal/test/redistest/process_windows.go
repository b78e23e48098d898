package redistest

import (
	"errors"
	"syscall"
	"time"
)

// The signals that stop a process, and have it go on. Windows has none: to send one fails, and with it the
// test that wants to.
const (
	Stop     = syscall.Signal(19)
	Continue = syscall.Signal(18)
)

// awaitStopped is never called: see Stop.
func awaitStopped(int) error { return errors.ErrUnsupported }

// Alive says whether there is such a process.
func Alive(pid int) bool {
	h, err := syscall.OpenProcess(syscall.PROCESS_QUERY_INFORMATION, false, uint32(pid))
	if err != nil {
		return false
	}
	defer func() { _ = syscall.CloseHandle(h) }()
	var code uint32
	const stillActive = 259
	return syscall.GetExitCodeProcess(h, &code) == nil && code == stillActive
}

// CPU is the time that processors have spent on this process, for itself and inside the kernel.
func CPU() time.Duration {
	var created, ended, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err == nil {
		err = syscall.GetProcessTimes(self, &created, &ended, &kernel, &user)
	}
	if err != nil {
		panic(err)
	}
	ticks := func(f syscall.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(ticks(kernel)+ticks(user)) * 100 // a tick is 100 ns
}

// allCPU is CPU: Windows does not add up what a process has started.
func allCPU() time.Duration { return CPU() }
