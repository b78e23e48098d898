// Package redisson runs the real Redisson, in a Java process of its own, for tests and for the comparison:
// java/ has the program, which does what it is told at objects of Redisson. It needs a JDK of 17 or later and
// Maven, and Maven's repository at the first time.
//
// The program writes each hold to a file that is mapped into memory, with the times of CLOCK_MONOTONIC, and
// so may any other process: see [Records]. So whoever judges them is not the Redis under test, costs them
// nothing, and sees what a process did that was killed.
package redisson

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Newest is the version of Redisson of the comparison, and of tests for which one is enough.
const Newest = "4.7.0"

// Lacks returns the tool that is not on the PATH and that the program needs; empty: none.
func Lacks() string {
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool
		}
	}
	return ""
}

//go:embed java
var sources embed.FS

// Build builds the program with a version of Redisson in a directory, which must be empty.
func Build(version, dir string) (*Program, error) {
	err := fs.WalkDir(sources, "java", func(path string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(to, 0o700))
		}
		text, err := sources.ReadFile(path)
		return errors.Join(err, os.WriteFile(to, text, 0o600))
	})
	if err != nil {
		return nil, err
	}
	mvn := exec.Command("mvn", "-q", "-B", "package", "-Dredisson.version="+version, "-Dout="+filepath.Join(dir, "built"))
	mvn.Dir = filepath.Join(dir, "java")
	if text, err := mvn.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mvn: %w: %s", err, text)
	}
	return &Program{Version: version, dir: filepath.Join(dir, "built")}, nil
}

// Program is what [Build] has built.
type Program struct {
	Version string
	dir     string
}

// Process is one that runs. Its methods are for one goroutine, but for Kill.
type Process struct {
	events chan string // what it says
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	early  []string // events that nobody has waited for yet
	stderr bytes.Buffer
	once   sync.Once
}

// Start starts the program, and returns when it is connected: java/src/main/java/latchkey/Settings.java has
// its arguments.
func (p *Program) Start(args ...string) (*Process, error) {
	classes := filepath.Join(p.dir, "classes") + string(os.PathListSeparator) + filepath.Join(p.dir, "lib", "*")
	run := &Process{events: make(chan string, 1000)}
	run.cmd = exec.Command("java", append([]string{"-Xmx512m", "-XX:+UseSerialGC", "-cp", classes, "latchkey.Driver"}, args...)...)
	run.cmd.Stderr = &run.stderr
	var err error
	if run.stdin, err = run.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := run.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := run.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(run.events)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			run.events <- lines.Text()
		}
	}()
	ready, err := run.Await("ready")
	if err == nil && ready[1] != p.Version {
		err = fmt.Errorf("it is Redisson %s", ready[1])
	}
	if err != nil {
		run.Close()
		return nil, err
	}
	return run, nil
}

// Tell sends a command: java/src/main/java/latchkey/Commands.java has them.
func (p *Process) Tell(format string, args ...any) error {
	_, err := fmt.Fprintf(p.stdin, format+"\n", args...)
	return err
}

// patience is how long Await waits.
const patience = 2 * time.Minute

// Await returns the words of the next event that begins with these. An event of an error before it is one.
func (p *Process) Await(words ...string) ([]string, error) {
	prefix := strings.Join(words, " ")
	is := func(event string) bool { return event == prefix || strings.HasPrefix(event, prefix+" ") }
	for i, event := range p.early {
		if is(event) {
			p.early = append(p.early[:i], p.early[i+1:]...)
			return strings.Fields(event), nil
		}
	}
	deadline := time.After(patience)
	for {
		select {
		case event, ok := <-p.events:
			switch {
			case !ok:
				return nil, fmt.Errorf("the program has ended, and did not say %q: %.2000s", prefix, p.stderr.String())
			case is(event):
				return strings.Fields(event), nil
			case strings.HasPrefix(event, "error "):
				return nil, errors.New(event)
			}
			p.early = append(p.early, event)
		case <-deadline:
			return nil, fmt.Errorf("the program did not say %q in %v", prefix, patience)
		}
	}
}

// CPU is how long it has used processors, to a hundredth of a second; 0 where that cannot be told.
func (p *Process) CPU() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, rest, found := strings.Cut(string(stat), ") ") // behind the name of the program
	fields := strings.Fields(rest)
	if err != nil || !found || len(fields) < 13 {
		return 0
	}
	user, err := strconv.Atoi(fields[11])
	system, more := strconv.Atoi(fields[12])
	if err != nil || more != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// Kill ends it as kill -9 does.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() } // it may have ended

// Wait returns once it has ended, and what it has written of errors.
func (p *Process) Wait() (stderr string) {
	for range p.events { // until the pipe is closed, which must not be waited for before
	}
	p.once.Do(func() { _ = p.cmd.Wait() }) // however it has ended
	return p.stderr.String()
}

// Close ends it, and returns what it has written of errors.
func (p *Process) Close() (stderr string) {
	_ = p.Tell("quit") // it may have ended
	timer := time.AfterFunc(20*time.Second, p.Kill)
	defer timer.Stop()
	return p.Wait()
}
