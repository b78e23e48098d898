package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// member is one process of the crew. When it is killed, another one takes its place.
type member struct {
	witness.Process
	cmd    *exec.Cmd
	exited chan struct{}
	stdin  interface{ Close() error } // closed with this process
}

// Crew is the worker processes of an episode.
type Crew struct {
	Order plan.Order
	Words witness.Words

	mu      sync.Mutex
	members []*member // those that run, by number
	all     []*member
}

// Hire starts the n-th worker.
func (c *Crew) Hire(t testing.TB, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	its := c.Order
	its.Worker, its.Serial = n, uint64(len(c.all))
	text, err := json.Marshal(its)
	require.NoError(t, err)
	m := &member{Process: witness.Process{Serial: its.Serial}, cmd: exec.Command(os.Args[0]), exited: make(chan struct{})}
	m.cmd.Env = append(os.Environ(), plan.OrderVariable+"="+string(text))
	if c.Order.Has("starved CPU") {
		m.cmd.Env = append(m.cmd.Env, "GOMAXPROCS=1")
	}
	m.stdin, err = m.cmd.StdinPipe()
	require.NoError(t, err)
	stderr, err := os.Create(plan.LogPath(c.Order.Dir, m.Serial) + ".stderr")
	require.NoError(t, err)
	m.cmd.Stderr, m.cmd.Stdout = stderr, stderr
	require.NoError(t, m.cmd.Start())
	_ = stderr.Close() // the worker has it
	go func() {
		_ = m.cmd.Wait() // how it ended, its words say
		close(m.exited)
	}()
	c.all = append(c.all, m)
	if n < len(c.members) {
		c.members[n] = m
	} else {
		c.members = append(c.members, m)
	}
	t.Cleanup(m.kill)
}

func (m *member) kill() {
	_ = m.cmd.Process.Kill() // it may have ended
	<-m.exited
}

// kill kills the n-th worker.
func (c *Crew) kill(n int) {
	c.mu.Lock()
	m := c.members[n]
	c.mu.Unlock()
	select {
	case <-m.exited: // it has ended by itself: that is not excused
		return
	default:
	}
	m.Doomed = time.Now().UnixNano() // it may take a tenth of a second to end
	m.kill()
	m.Killed = time.Now().UnixNano()
}

func (c *Crew) signal(n int, s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.members[n].cmd.Process.Signal(s) // it may have ended
}

// Finish waits until all workers have ended, and returns what is wrong with each that does not. Once one of
// them has told of a violation it ends them all.
func (c *Crew) Finish(limit time.Duration) (violations []plan.Violation) {
	timeout := time.Now().Add(limit)
	for n, m := range c.members {
		for running := true; running; {
			select {
			case <-m.exited:
				running = false
			case <-time.After(20 * time.Millisecond):
				if c.Tells() {
					c.end()
					return nil
				}
			}
			if running && time.Now().After(timeout) {
				_ = m.cmd.Process.Signal(syscall.SIGQUIT) // it writes its stacks
				<-time.After(2 * time.Second)
				violations = append(violations, plan.Violation{Kind: "hang", Text: fmt.Sprintf("worker %d does not end: %.3000s", m.Serial, c.wrote(m))})
				c.end()
				return violations
			}
		}
		if c.Words.Finished(n).Load() == 0 {
			violations = append(violations, plan.Violation{Kind: "crash", Text: fmt.Sprintf("worker %d: %.3000s", m.Serial, c.wrote(m))})
		}
	}
	return violations
}

// end kills all workers.
func (c *Crew) end() {
	for n := range c.members {
		c.kill(n)
	}
}

// wrote is what a worker has written as it ended, as far as that can be read.
func (c *Crew) wrote(m *member) string {
	text, _ := os.ReadFile(plan.LogPath(c.Order.Dir, m.Serial) + ".stderr")
	return string(text)
}

// Tells reports whether a worker has told of a violation.
func (c *Crew) Tells() bool {
	for _, m := range c.all {
		if info, err := os.Stat(plan.LogPath(c.Order.Dir, m.Serial)); err == nil && info.Size() > 0 {
			return true
		}
	}
	return false
}

// Told returns the violations that workers have seen themselves.
func (c *Crew) Told() (violations []plan.Violation) {
	for _, m := range c.all {
		text, _ := os.ReadFile(plan.LogPath(c.Order.Dir, m.Serial)) // there is none of one that was killed early
		for line := range strings.Lines(string(text)) {
			kind, words, _ := strings.Cut(strings.TrimSpace(line), "\t")
			violations = append(violations, plan.Violation{Kind: kind, Text: fmt.Sprintf("worker %d: %s", m.Serial, words)})
		}
	}
	return violations
}

// Processes are all that there were.
func (c *Crew) Processes() (all []witness.Process) {
	for _, m := range c.all {
		all = append(all, m.Process)
	}
	return all
}
