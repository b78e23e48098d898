package baseline

import (
	"context"
	"sync"
	"time"
)

// waiters is how Redisson wakes the threads of a process: 0 wakes one, and 1 wakes all. A message that comes
// between an attempt and the wait for it is kept.
type waiters struct {
	mu     sync.Mutex
	inside int
	kept   int
	line   []chan struct{} // each is closed by the message that wakes it
}

func (w *waiters) enter() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside++
}

func (w *waiters) exit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside--; w.inside == 0 {
		w.kept = 0
	}
}

func (w *waiters) wake(message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside == 0 {
		return
	}
	n := 1
	if message == "1" {
		n = max(1, len(w.line))
	}
	for ; n > 0 && len(w.line) > 0; n-- {
		close(w.line[0])
		w.line = w.line[1:]
	}
	w.kept += n
}

// wait returns after a message, or when left is over; negative: never.
func (w *waiters) wait(ctx context.Context, left time.Duration) error {
	w.mu.Lock()
	if w.kept > 0 {
		w.kept--
		w.mu.Unlock()
		return nil
	}
	woken := make(chan struct{})
	w.line = append(w.line, woken)
	w.mu.Unlock()
	var over <-chan time.Time
	if left >= 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		over = timer.C
	}
	var err error
	select {
	case <-woken:
		return nil
	case <-over:
	case <-ctx.Done():
		err = ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, other := range w.line {
		if other == woken {
			w.line = append(w.line[:i], w.line[i+1:]...)
			return err
		}
	}
	w.kept++ // the message that woke it is for another
	return err
}
