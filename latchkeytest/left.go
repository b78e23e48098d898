package latchkeytest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// tellHeld logs the holds of a process that were not unlocked, or whose release is still under way.
func (s *Server) tellHeld(p *process) {
	s.t.Helper()
	s.orders.mu.Lock()
	var lines []string
	for _, h := range s.orders.held {
		if h.of == p {
			lines = append(lines, fmt.Sprintf("latchkeytest: %q is still held, and was taken at %s", h.step.name, h.step.place))
		}
	}
	s.orders.mu.Unlock()
	slices.Sort(lines)
	for _, line := range lines {
		s.t.Log(line)
	}
}

// open counts the servers of the binary. Goroutines cannot be told from those of other tests that run at the
// same time. So they are looked at when no other test has a server.
var open struct {
	mu     sync.Mutex
	count  int
	before map[string]bool // goroutines that were there when the first one began
}

// began is called when a server begins.
func began() {
	open.mu.Lock()
	defer open.mu.Unlock()
	if open.count == 0 {
		open.before = map[string]bool{}
		for _, g := range goroutines() {
			open.before[g.id] = true
		}
	}
	open.count++
}

// patience is how long a goroutine may take to end after all that it works for has ended.
const patience = 5 * time.Second

// ended is called when a server has ended. It fails the test when goroutines of latchkey go on.
func ended(t testing.TB, leaky bool) {
	t.Helper()
	open.mu.Lock()
	defer open.mu.Unlock() // also while it waits: a test that begins would have goroutines
	if open.count--; open.count > 0 || leaky {
		return
	}
	var left []goroutine
	for pause, waited := time.Millisecond, time.Duration(0); ; pause = min(2*pause, 100*time.Millisecond) {
		left = slices.DeleteFunc(goroutines(), func(g goroutine) bool { return open.before[g.id] })
		if len(left) == 0 {
			return
		}
		if waited >= patience {
			break
		}
		time.Sleep(pause)
		waited += pause
	}
	var stacks strings.Builder
	for _, g := range left {
		stacks.WriteString("\n\n" + g.stack)
	}
	t.Errorf("latchkeytest: %d goroutines of latchkey are still running:%s", len(left), &stacks)
}

type goroutine struct{ id, stack string }

// goroutines are those that are inside latchkey, but for the one that asks.
func goroutines() (all []goroutine) {
	buffer := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buffer, true)
		if n < len(buffer) {
			buffer = buffer[:n]
			break
		}
		buffer = make([]byte, 2*len(buffer))
	}
	for _, stack := range strings.Split(string(buffer), "\n\n")[1:] {
		head, frames, _ := strings.Cut(stack, "\n")
		id, _, _ := strings.Cut(strings.TrimPrefix(head, "goroutine "), " ")
		for line := range strings.Lines(frames) {
			function := strings.TrimPrefix(line, "created by ")
			if isOurs(function) {
				all = append(all, goroutine{id, stack})
				break
			}
		}
	}
	return all
}
