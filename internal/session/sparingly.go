package session

import (
	"sync"
	"time"
)

// sparing runs functions that no caller waits for, a few at a time, in the order in which they came. The zero
// value is ready.
type sparing struct {
	mu      sync.Mutex
	waiting []waitingFunc // oldest first
	workers int
	grown   time.Time // when the last worker beyond fewWorkers was added
}

type waitingFunc struct {
	run   func()
	since time.Time
}

const (
	// fewWorkers is how many goroutines run the functions.
	fewWorkers = 16
	// workerPatience is how long the oldest function waits before one more goroutine comes: if the server is far
	// away, more functions must run at a time.
	workerPatience = time.Second
	// workerPause is the pause between two of these additions.
	workerPause = 250 * time.Millisecond
)

// GoSparingly runs f as [Client.Go] does, and soon. If something is due for many names at the same time, these names
// share a few goroutines, also while the server does not answer. In a cluster each function has its own goroutine:
// one part of the cluster may be away, and must not hold up the functions of other parts.
func (c *Client) GoSparingly(f func()) {
	if c.Sharded {
		c.Go(f)
		return
	}
	s := &c.sparing
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, waitingFunc{f, time.Now()})
	if s.lacksWorker() {
		s.workers++
		c.Go(s.work)
	}
}

// lacksWorker reports whether one more goroutine should run functions. The caller holds the mutex.
func (s *sparing) lacksWorker() bool {
	if s.workers < fewWorkers {
		return true
	}
	if time.Since(s.waiting[0].since) < workerPatience || time.Since(s.grown) < workerPause {
		return false
	}
	s.grown = time.Now()
	return true
}

// work runs the functions that wait, until none is left.
func (s *sparing) work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) > 0 {
		f := s.waiting[0].run
		s.waiting[0] = waitingFunc{}
		s.waiting = s.waiting[1:]
		s.mu.Unlock()
		f()
		s.mu.Lock()
	}
	s.waiting = nil
	s.workers--
}
