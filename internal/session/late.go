package session

import (
	"sync"
	"time"
)

// late is what was held when the client was closed. Its code may still run, and its Unlock still releases, so
// the connections stay open for it: until the last one was unlocked, or its lease is over. The zero value is
// ready.
type late struct {
	mu    sync.Mutex
	held  map[Tenure]time.Time // until when the lease can be trusted
	close func()               // nil: begin was not called, or it has been called
	timer *time.Timer
}

// expect is told of a tenure that is about to be ended because the client is.
func (l *late) expect(t Tenure) {
	left := t.Item().Left()
	if left <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[Tenure]time.Time{}
	}
	l.held[t] = time.Now().Add(left)
}

// begin calls end once nothing is held any more.
func (l *late) begin(end func()) {
	l.mu.Lock()
	l.close = end
	var last time.Time
	for _, until := range l.held {
		if until.After(last) {
			last = until
		}
	}
	if len(l.held) > 0 {
		l.timer = time.AfterFunc(time.Until(last), func() {
			l.mu.Lock()
			clear(l.held)
			l.mu.Unlock()
			l.rest()
		})
	}
	l.mu.Unlock()
	l.rest()
}

// rest closes if nothing is held.
func (l *late) rest() {
	l.mu.Lock()
	var last func()
	if len(l.held) == 0 {
		last, l.close = l.close, nil
		if l.timer != nil {
			l.timer.Stop()
		}
	}
	l.mu.Unlock()
	if last != nil {
		last()
	}
}

// until returns how long the lease of a tenure can be trusted; a zero time when it is not one of them.
func (l *late) Until(t Tenure) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[t]
}

func (l *late) Over(t Tenure) {
	l.mu.Lock()
	delete(l.held, t)
	l.mu.Unlock()
	l.rest()
}
