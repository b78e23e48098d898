//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// ready is the file from which a process that is held reads that it may run its command.
const ready = 3

// waiting is a process of our own program that becomes the command once a line is written to start. When we
// are killed before that, it ends: so no command ever runs whose group the guard does not know.
func waiting(path string, command []string) (child *exec.Cmd, start *os.File, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	read, start, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	child = exec.Command(self, append([]string{"start", "--", path}, command...)...) //nolint:gosec,noctx // it gets a TERM first
	child.ExtraFiles = []*os.File{read}
	return child, start, nil
}

// become is what such a process does: it waits, and runs path with these words in place of itself.
func become(path string, command []string) error {
	var line [1]byte
	file := os.NewFile(ready, "ready")
	if n, _ := file.Read(line[:]); n == 0 {
		return exit(statusNotRunnable, "latchkey has ended")
	}
	syscall.CloseOnExec(ready)
	err := syscall.Exec(path, command, os.Environ()) //nolint:gosec // it is what this is for
	return exit(statusOfStart(err), "%s: %w", path, err)
}

// statusOfStart is that of a command that cannot be started.
func statusOfStart(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return statusNotFound
	}
	return statusNotRunnable
}

// guard is a process that outlives ours when that is killed, and then ends the group of the command.
type guard struct {
	process *exec.Cmd
	pipe    io.WriteCloser
}

func newGuard(grace time.Duration) (*guard, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	g := &guard{process: exec.Command(path, "guard", "--grace", grace.String())} //nolint:gosec,noctx // ourselves; it ends with us
	g.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}                   // what ends our group does not end it
	if g.pipe, err = g.process.StdinPipe(); err != nil {
		return nil, err
	}
	return g, g.process.Start()
}

func (g *guard) watch(group int) { _, _ = fmt.Fprintln(g.pipe, group) }

// dismiss ends the guard, which has nothing to do any more.
func (g *guard) dismiss() {
	_, _ = fmt.Fprintln(g.pipe, "done")
	_ = g.pipe.Close()
	_ = g.process.Wait()
}

// stand is what the guard does: it reads the group from in, and ends that when in ends without a word.
func stand(in io.Reader, grace time.Duration) {
	var group int
	var word string
	if n, _ := fmt.Fscan(in, &group); n == 0 || group <= 1 {
		return
	}
	if n, _ := fmt.Fscan(in, &word); n > 0 || !alive(group) {
		return
	}
	_ = syscall.Kill(-group, syscall.SIGTERM)
	for deadline := time.Now().Add(grace); alive(group); time.Sleep(looks) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(-group, syscall.SIGKILL)
			return
		}
	}
}
