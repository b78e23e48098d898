package wait

import (
	"container/list"
	"context"
	"sync"
)

// Line is the goroutines of one process that want the same thing: first come, first served, one at a time.
// Whoever has the turn passes it to the next, with what it leaves. The zero value is an empty line; methods
// are safe for concurrent use.
type Line[T comparable] struct {
	mu      sync.Mutex
	taken   bool      // somebody has the turn
	parked  T         // what awaits whoever comes; the zero value while somebody has the turn
	waiting list.List // of chan T, capacity 1
}

// Enter returns when it is the caller's turn, with what the one before left. When the line was empty that is
// what was parked, or the zero value. When ctx or closing ends before, it returns the cause, and the caller
// has no turn. A turn that came at that very moment is passed to the next; if there is none, Enter returns
// what was left beside the error.
func (l *Line[T]) Enter(ctx, closing context.Context) (left T, err error) {
	l.mu.Lock()
	if !l.taken {
		left = l.take()
		l.mu.Unlock()
		return left, nil
	}
	turn := make(chan T, 1)
	place := l.waiting.PushBack(turn)
	l.mu.Unlock()
	select {
	case left = <-turn:
		return left, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-closing.Done():
		err = context.Cause(closing)
	}
	l.mu.Lock()
	l.waiting.Remove(place) // does nothing when Pass has removed it
	l.mu.Unlock()
	select {
	case passed := <-turn:
		if !l.Pass(passed) {
			left = passed
		}
	default:
	}
	return left, err
}

// Pass ends the caller's turn. It reports whether somebody was waiting, who has the turn now, and what is
// left. Otherwise the line is empty, and what is left stays the caller's.
func (l *Line[T]) Pass(left T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pass(left)
}

func (l *Line[T]) pass(left T) bool {
	next := l.waiting.Front()
	if next == nil {
		l.taken = false
		return false
	}
	l.waiting.Remove(next).(chan T) <- left // has room: it is sent to once
	return true
}

// Len returns how many wait for the turn.
func (l *Line[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.Len()
}

// IsEmpty reports whether nobody has the turn.
func (l *Line[T]) IsEmpty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.taken
}

// HasNext reports whether somebody waits for the turn.
func (l *Line[T]) HasNext() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.Len() > 0
}
