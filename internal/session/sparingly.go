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
	grown   time.Time // when a worker was added to the few
}

type waitingFunc struct {
	run   func()
	since time.Time
}

const (
	// fewWorkers is how many goroutines run them.
	fewWorkers = 16
	// workerPatience is how long the oldest waits before there is one goroutine more: a server that is far away
	// takes more of them at a time.
	workerPatience = time.Second
	// workerPause is between two such additions.
	workerPause = 250 * time.Millisecond
)

// GoSparingly runs f as [Client.Go] does, and soon: many names for which something is due at the same time
// share a few goroutines, also while the server does not answer. In a cluster each has its own: one part of
// it may be away, and must not hold up what concerns the others.
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

// lacksWorker reports whether there should be one goroutine more. The caller holds the mutex.
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

// work runs what waits, until there is nothing.
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
