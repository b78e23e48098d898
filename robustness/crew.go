package robustness

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
)

// member is one process of the crew. When it is killed, another one takes its place.
type member struct {
	serial uint64
	doomed int64 // just before it was killed
	killed int64 // when it had ended by that; 0: it was not killed
	cmd    *exec.Cmd
	exited chan struct{}
	stdin  interface{ Close() error } // closed with this process
}

// crew is the worker processes of an episode.
type crew struct {
	order Order
	words Words

	mu      sync.Mutex
	members []*member // those that run, by number
	all     []*member
}

// hire starts the n-th worker.
func (c *crew) hire(t testing.TB, n int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	order1 := c.order
	order1.Worker, order1.Serial = n, uint64(len(c.all))
	text, err := json.Marshal(order1)
	require.NoError(t, err)
	m := &member{serial: order1.Serial, cmd: exec.Command(os.Args[0]), exited: make(chan struct{})}
	m.cmd.Env = append(os.Environ(), order+"="+string(text))
	if c.order.has("starved CPU") {
		m.cmd.Env = append(m.cmd.Env, "GOMAXPROCS=1")
	}
	m.stdin, err = m.cmd.StdinPipe()
	require.NoError(t, err)
	stderr, err := os.Create(logPath(c.order.Dir, m.serial) + ".stderr")
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
func (c *crew) kill(n int) {
	c.mu.Lock()
	m := c.members[n]
	c.mu.Unlock()
	select {
	case <-m.exited: // it has ended by itself: that is not excused
		return
	default:
	}
	m.doomed = time.Now().UnixNano() // it may take a tenth of a second to end
	m.kill()
	m.killed = time.Now().UnixNano()
}

func (c *crew) signal(n int, s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.members[n].cmd.Process.Signal(s) // it may have ended
}

// finish waits until all workers have ended, and returns what is wrong with those that do not. Once one of
// them has told of a violation it ends them all.
func (c *crew) finish(limit time.Duration) (violations []Violation) {
	timeout := time.Now().Add(limit)
	for n, m := range c.members {
		for running := true; running; {
			select {
			case <-m.exited:
				running = false
			case <-time.After(20 * time.Millisecond):
				if c.tells() {
					c.end()
					return nil
				}
			}
			if running && time.Now().After(timeout) {
				_ = m.cmd.Process.Signal(syscall.SIGQUIT) // it writes its stacks
				<-time.After(2 * time.Second)
				violations = append(violations, Violation{"hang", fmt.Sprintf("worker %d does not end: %.3000s", m.serial, c.wrote(m))})
				c.end()
				return violations
			}
		}
		if c.words.Finished(n).Load() == 0 {
			violations = append(violations, Violation{"crash", fmt.Sprintf("worker %d: %.3000s", m.serial, c.wrote(m))})
		}
	}
	return violations
}

// end kills all workers.
func (c *crew) end() {
	for n := range c.members {
		c.kill(n)
	}
}

// wrote is what a worker has written as it ended, as far as that can be read.
func (c *crew) wrote(m *member) string {
	text, _ := os.ReadFile(logPath(c.order.Dir, m.serial) + ".stderr")
	return string(text)
}

// tells reports whether a worker has told of a violation.
func (c *crew) tells() bool {
	for _, m := range c.all {
		if info, err := os.Stat(logPath(c.order.Dir, m.serial)); err == nil && info.Size() > 0 {
			return true
		}
	}
	return false
}

// told returns the violations that workers have seen themselves.
func (c *crew) told() (violations []Violation) {
	for _, m := range c.all {
		text, _ := os.ReadFile(logPath(c.order.Dir, m.serial)) // there is none of one that was killed early
		for line := range strings.Lines(string(text)) {
			kind, words, _ := strings.Cut(strings.TrimSpace(line), "\t")
			violations = append(violations, Violation{kind, fmt.Sprintf("worker %d: %s", m.serial, words)})
		}
	}
	return violations
}
