//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// waiting is a process of our own program that becomes the command once a line is written to start. When we
// are killed before that, it ends: so no command ever runs whose group the guard does not know. Close ready when the
// process has been started.
func waiting(path string, command []string) (child *exec.Cmd, ready, start *os.File, err error) {
	ready, start, err = os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	// It keeps its number there: what is open under others is the command's.
	if err = keepOpen(int(ready.Fd()), true); err == nil {
		child, err = ourselves(append([]string{"start", strconv.Itoa(int(ready.Fd())), "--", path}, command...)...)
	}
	if err != nil {
		_, _ = ready.Close(), start.Close()
		return nil, nil, nil, err
	}
	return child, ready, start, nil
}

// become is what such a process does: it waits, and runs path with these words in place of itself.
func become(ready int, path string, command []string) error {
	syscall.CloseOnExec(ready)
	var line [1]byte
	if n, _ := os.NewFile(uintptr(ready), "ready").Read(line[:]); n == 0 { //nolint:gosec // a descriptor
		return exit(statusNotRunnable, "latchkey has ended")
	}
	err := syscall.Exec(path, command, os.Environ()) //nolint:gosec // it is what this is for
	return exit(statusOfStart(err), "%s: %w", path, err)
}

// statusOfStart is the status when a command cannot be started.
func statusOfStart(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return statusNotFound
	}
	return statusNotRunnable
}

// keepOpen says whether what is started has a descriptor.
func keepOpen(fd int, keeps bool) error {
	flags := unix.FD_CLOEXEC
	if keeps {
		flags = 0
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags) //nolint:gosec // a descriptor
	return err
}

// inherited are the descriptors beside the first three that we were started with: they are for the command.
func inherited() (all []int) {
	const most = 1024
	for fd := 3; fd < most; fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			all = append(all, fd)
		}
	}
	return all
}
