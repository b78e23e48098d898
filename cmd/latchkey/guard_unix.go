//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A guard is a process that ends the group of a command when its lease is over, whatever becomes of ours: it may be
// stopped, killed, or cut off from Redis. The lines that it reads are
//
//	group N       the group of the command
//	until W L     what is held is held until W, in nanoseconds since 1970, and for L nanoseconds: what is over first
//	asked         the group was told to end
//
// So a lease ends there by the wall clock and by the monotonic one, as it does for a hold: see package lease.

// guard is that process, as we see it.
type guard struct {
	process *exec.Cmd
	in      io.WriteCloser
	lines   chan string
	gone    chan struct{} // closed when it has ended

	told time.Time // until when it lets the group run, as it was told last
}

// newGuard starts a guard. grace is how long the group may go on that was told to end.
func newGuard(grace time.Duration) (*guard, error) {
	process, err := ourselves("guard", "--grace", grace.String())
	if err != nil {
		return nil, err
	}
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends our group does not end it
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	g := &guard{process: process, in: in, lines: make(chan string, 16), gone: make(chan struct{})}
	go func() {
		_ = process.Wait()
		close(g.gone)
	}()
	return g, nil
}

// watch tells the guard of the group. It returns when that is written: the command must not run before. What is told later
// is written by a goroutine, since a guard that is stopped reads nothing.
func (g *guard) watch(group int, left func() time.Duration) error {
	g.extend(left)
	if _, err := fmt.Fprintf(g.in, "%sgroup %d\n", <-g.lines, group); err != nil {
		return err
	}
	go func() {
		for line := range g.lines {
			_, _ = io.WriteString(g.in, line)
		}
	}()
	return nil
}

// tell writes a line, unless the guard has not read the ones before.
func (g *guard) tell(format string, args ...any) bool {
	select {
	case g.lines <- fmt.Sprintf(format+"\n", args...):
		return true
	default:
		return false
	}
}

// extend tells the guard for how long the group may run, if that is longer than it knows. It returns that time. This process
// may be stopped in between: so it looks at the clock before it asks.
func (g *guard) extend(left func() time.Duration) time.Duration {
	const jitter = 5 * time.Millisecond
	now := time.Now()
	lasts := left()
	if until := now.Add(lasts); until.Sub(g.told) > jitter && g.tell("until %d %d", until.UnixNano(), lasts) {
		g.told = until
	}
	return lasts
}

// dismiss ends the guard, which has nothing to do any more.
func (g *guard) dismiss() {
	_ = g.process.Process.Kill()
	<-g.gone
	close(g.lines)
}

// charge is what a guard knows.
type charge struct {
	group     int
	wall      int64     // when the lease is over, in nanoseconds since 1970
	monotonic time.Time // the same by the other clock
	asked     bool      // the group was told to end
	ends      ending
}

// hear reads a line.
func (w *charge) hear(line string) {
	var left int64
	if n, _ := fmt.Sscanf(line, "until %d %d", &w.wall, &left); n == 2 {
		w.monotonic = time.Now().Add(time.Duration(left))
		w.ends.saw(time.Duration(left))
	} else if n, _ := fmt.Sscanf(line, "group %d", &w.group); n == 0 && line == "asked" {
		w.asked = true
	}
}

// left is how long the lease lasts: by the clock that says less.
func (w *charge) left() time.Duration {
	return min(time.Until(w.monotonic), time.Duration(w.wall-time.Now().UnixNano()))
}

// ask tells the group to end, once.
func (w *charge) ask() {
	if !w.asked {
		w.asked = true
		_ = syscall.Kill(-w.group, syscall.SIGTERM)
		_ = syscall.Kill(-w.group, syscall.SIGCONT) // else one that is stopped does not hear it
	}
}

// stand is what the guard does, until it is killed, or the group has ended.
func stand(in io.Reader, grace time.Duration) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for all := bufio.NewScanner(in); all.Scan(); {
			lines <- all.Text()
		}
	}()
	w := charge{ends: ending{grace: grace}}
	orphaned := false
	for {
		wait := looks
		switch left := w.left(); {
		case w.group <= 1:
			wait = time.Second
		case left > w.late() && !orphaned:
			wait = min(left-w.late(), time.Second) // the wall clock may be set, and the machine suspended
		case left > w.ends.lead():
			wait = min(left-w.ends.lead(), looks)
		}
		select {
		case line, more := <-lines:
			if more {
				w.hear(line)
				continue
			}
			if lines = nil; w.group <= 1 {
				return
			}
			if orphaned = true; alive(w.group) { // we were killed
				end := time.Now().Add(grace)
				if w.monotonic.After(end) {
					w.monotonic = end
				}
				w.ask()
			}
		case <-time.After(wait):
		}
		switch {
		case w.group <= 1:
		case orphaned && !alive(w.group):
			return
		case w.left() <= w.ends.lead():
			_ = syscall.Kill(-w.group, syscall.SIGKILL)
		case w.left() <= w.late():
			w.ask()
		}
	}
}

// late is how long before the end the guard itself tells the group to end: after we would have.
func (w *charge) late() time.Duration {
	margin := w.ends.margin()
	return margin - min(margin/4, 100*time.Millisecond)
}

// ending is how a group is ended before its lease is over.
type ending struct {
	grace   time.Duration
	longest time.Duration // that the lease was to last: one that begins with a grant by message is short at first
}

func (e *ending) saw(left time.Duration) { e.longest = max(e.longest, left) }

// margin is how long before the end the group is told to end. A renewal that is in time comes a third of the lease
// earlier.
func (e *ending) margin() time.Duration { return min(min(e.grace, e.longest)+longestLead, e.longest/3) }

// lead is how long before the end the group is killed: a machine may be busy, and run us that much later.
// Where the lease is long enough, it is not at the cost of the grace.
func (e *ending) lead() time.Duration { return min(e.margin()/2, longestLead) }

const longestLead = 500 * time.Millisecond

// ourselves is this program with other arguments, also when its file was replaced or removed.
func ourselves(args ...string) (*exec.Cmd, error) {
	path := "/proc/self/exe"
	if _, err := os.Stat(path); err != nil {
		if path, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	return &exec.Cmd{Path: path, Args: append([]string{os.Args[0]}, args...)}, nil
}
