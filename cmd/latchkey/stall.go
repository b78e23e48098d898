package main

import (
	"context"
	"sync"
	"time"
)

// witness notes when its process stood still: a machine that is busy is not a lock that is broken. The zero value
// has seen nothing.
type witness struct {
	mu     sync.Mutex
	stalls []stall
}

// stall is a time in which a process did not run.
type stall struct {
	end    time.Time
	length time.Duration
}

const (
	// glance is how often a witness looks.
	glance = 5 * time.Millisecond
	// blink is how much later than that it may look, on a machine that has time.
	blink = 5 * time.Millisecond
)

// testify has this process watched until ctx ends. each, which may be nil, is told every stall.
func testify(ctx context.Context, each func(stall)) *witness {
	w := &witness{}
	go func() {
		timer := time.NewTimer(glance)
		defer timer.Stop()
		for last := time.Now(); ; {
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			now := time.Now()
			if late := now.Sub(last) - glance; late > blink {
				s := stall{now, late}
				w.note(s)
				if each != nil {
					each(s)
				}
			}
			last = now
			timer.Reset(glance)
		}
	}()
	return w
}

func (w *witness) note(s stall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalls = append(w.stalls, s)
}

// since is for how long it stood still since then, in all.
func (w *witness) since(from time.Time) (sum time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.stalls {
		if s.end.After(from) {
			sum += min(s.length, s.end.Sub(from))
		}
	}
	return sum
}
