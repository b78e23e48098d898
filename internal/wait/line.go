package wait

import (
	"context"
	"sync"
)

// Line is the goroutines of one process that want the same thing: first come, first served, one at a time.
// Whoever has the turn passes it to the next, with what it leaves. The zero value is an empty line; methods
// are safe for concurrent use.
type Line[T comparable] struct {
	mu          sync.Mutex
	taken       bool // somebody has the turn
	parked      T    // what awaits whoever comes; the zero value while somebody has the turn
	length      int  // how many wait for it
	first, last *place[T]
	turn        *place[T] // of whoever has the turn; nil if it did not have to wait
	spare       *place[T] // to be used again
}

// place is that of one who waits. A place and its channel are used again: under contention each turn would
// cost two otherwise.
type place[T any] struct {
	turn           chan T // capacity 1: what is passed has room, since it is sent to once for each use
	previous, next *place[T]
	wants          any  // what it takes without the turn; nil: nothing. Else it is not used again: see keep
	given          bool // it was given that, and has no turn. Set before turn is sent to
}

// Enter returns when it is the caller's turn, with what the one before left. When the line was empty that is
// what was parked, or the zero value. When ctx or closing ends before, it returns the cause, and the caller
// has no turn. A turn that came at that very moment is passed to the next; if there is none, Enter returns
// what was left beside the error.
func (l *Line[T]) Enter(ctx, closing context.Context) (T, error) {
	left, _, err := l.EnterWanting(ctx, closing, nil)
	return left, err
}

// EnterWanting is Enter for a caller who may also be given something by [Line.Give]: then given is true, and
// the caller has no turn. When the context ended at that very moment, what was given comes beside the error.
func (l *Line[T]) EnterWanting(ctx, closing context.Context, wants any) (left T, given bool, err error) {
	l.mu.Lock()
	if !l.taken {
		left := l.take()
		l.mu.Unlock()
		return left, false, nil
	}
	p := l.append(wants)
	l.mu.Unlock()
	select {
	case left := <-p.turn:
		return left, p.given, nil
	case <-ctx.Done():
		return l.withdraw(p, ctx)
	case <-closing.Done():
		return l.withdraw(p, closing)
	}
}

// withdraw is the end of Enter for one whose wait was ended.
func (l *Line[T]) withdraw(p *place[T], ended context.Context) (left T, given bool, err error) {
	l.mu.Lock()
	passed := p != l.first && p.previous == nil // it is not in the line any more
	if !passed {
		l.remove(p)
		l.keep(p)
	}
	l.mu.Unlock()
	if passed {
		turn := <-p.turn
		if given = p.given; given || !l.Pass(turn) {
			left = turn
		}
	}
	return left, given, context.Cause(ended)
}

// keep has a place used again. Where something is given, several may have turns at once: then nobody knows
// whether the one who had this place has taken what was sent there. The mutex is held.
func (l *Line[T]) keep(p *place[T]) {
	if p != nil && p.wants == nil {
		l.spare = p
	}
}

// Pass ends the caller's turn. It reports whether somebody was waiting, who has the turn now, and what is
// left. Otherwise the line is empty, and what is left stays the caller's.
func (l *Line[T]) Pass(left T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pass(left)
}

// pass is Pass with the mutex held.
func (l *Line[T]) pass(left T) bool {
	l.keep(l.turn) // who had it has taken what was sent there
	next := l.first
	l.turn = next
	if next == nil {
		l.taken = false
		return false
	}
	l.remove(next)
	next.turn <- left
	return true
}

// Disband gives everybody who waits the turn, at once: whoever has it need not wait for the others.
func (l *Line[T]) Disband() {
	l.mu.Lock()
	defer l.mu.Unlock()
	var nothing T
	for l.first != nil {
		l.pass(nothing)
	}
}

// append adds a place at the end. The mutex is held.
func (l *Line[T]) append(wants any) *place[T] {
	p := l.spare
	if p == nil || wants != nil {
		p = &place[T]{turn: make(chan T, 1), wants: wants}
	} else {
		l.spare = nil
	}
	if p.previous = l.last; l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.length++
	return p
}

// remove takes a place out. The mutex is held.
func (l *Line[T]) remove(p *place[T]) {
	if p.previous == nil {
		l.first = p.next
	} else {
		p.previous.next = p.next
	}
	if p.next == nil {
		l.last = p.previous
	} else {
		p.next.previous = p.previous
	}
	p.previous, p.next = nil, nil
	l.length--
}

// Len returns how many wait for the turn.
func (l *Line[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length
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
	return l.length > 0
}
