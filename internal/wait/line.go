package wait

import (
	"container/list"
	"context"
	"sync"
)

// Line is the goroutines of one process that want the same thing: first come, first served, one at a time.
// Whoever has the turn passes it to the next, with what it leaves. The zero value is an empty line; methods
// are safe for concurrent use.
type Line[T any] struct {
	mu      sync.Mutex
	taken   bool      // somebody has the turn
	waiting list.List // of *place[T]
}

// place is one in the line.
type place[T any] struct {
	left  chan T // what it gets; capacity 1
	wants any    // what it takes without the turn; nil: nothing
	given bool   // it was given that, and has no turn. Set before left is sent to
}

// Enter returns when it is the caller's turn, with what the one before left. That is the zero value when the
// line was empty. When ctx or closing ends before, it returns the cause, and the caller has no turn. A turn
// that came at that very moment is passed to the next; if there is none, Enter returns what was left beside
// the error.
func (l *Line[T]) Enter(ctx, closing context.Context) (left T, err error) {
	left, _, err = l.EnterWanting(ctx, closing, nil)
	return left, err
}

// EnterWanting is Enter for a caller who may also be given something by [Line.Give]: then given is true, and
// the caller has no turn. When the context ended at that very moment, what was given comes beside the error.
func (l *Line[T]) EnterWanting(ctx, closing context.Context, wants any) (left T, given bool, err error) {
	l.mu.Lock()
	if !l.taken {
		l.taken = true
		l.mu.Unlock()
		return left, false, nil
	}
	p := &place[T]{left: make(chan T, 1), wants: wants}
	at := l.waiting.PushBack(p)
	l.mu.Unlock()
	select {
	case left = <-p.left:
		return left, p.given, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-closing.Done():
		err = context.Cause(closing)
	}
	l.mu.Lock()
	l.waiting.Remove(at) // does nothing when Pass or Give has removed it
	l.mu.Unlock()
	select {
	case passed := <-p.left:
		if given = p.given; given || !l.Pass(passed) {
			left = passed
		}
	default:
	}
	return left, given, err
}

// Pass ends the caller's turn. It reports whether somebody was waiting, who has the turn now, and what is
// left. Otherwise the line is empty, and what is left stays the caller's.
func (l *Line[T]) Pass(left T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.waiting.Front()
	if next == nil {
		l.taken = false
		return false
	}
	l.waiting.Remove(next).(*place[T]).left <- left // has room: it is sent to once
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
