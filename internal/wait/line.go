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
	left        sync.Pool // places that nobody waits at
	closed      error     // why nobody may wait any more; nil: they may
}

// place is that of one who waits. A place and its channel are used again: under contention each turn would
// cost two otherwise.
type place[T any] struct {
	turn           chan T // capacity 1: what is passed has room, since it is sent to once for each use
	previous, next *place[T]
	wants          any  // what it takes without the turn; nil: nothing
	given          bool // it was given that, and has no turn. Set before turn is sent to
	sent           bool // it was sent away by Close, and has nothing. Set likewise
}

// Enter returns when it is the caller's turn, with what the one before left. When the line was empty that is
// what was parked, or the zero value. When ctx ends before, it returns the cause, and when the line is closed
// the reason. Then the caller has no turn. A turn that came as ctx ended is passed to the next; if there is
// none, Enter returns what was left beside the error.
func (l *Line[T]) Enter(ctx context.Context) (T, error) {
	left, _, err := l.EnterWanting(ctx, nil)
	return left, err
}

// EnterWanting is Enter for a caller who may also be given something by [Line.Give]: then given is true, and
// the caller has no turn. When the context ended at that very moment, what was given comes beside the error.
func (l *Line[T]) EnterWanting(ctx context.Context, wants any) (left T, given bool, err error) {
	l.mu.Lock()
	if !l.taken {
		left := l.take()
		l.mu.Unlock()
		return left, false, nil
	}
	if err := l.closed; err != nil {
		l.mu.Unlock()
		return left, false, err
	}
	p := l.append(wants)
	l.mu.Unlock()
	if ended := ctx.Done(); ended == nil { // to wait for one thing costs half of what two cost
		left = <-p.turn
	} else {
		select {
		case left = <-p.turn:
		case <-ended:
			return l.withdraw(p, ctx)
		}
	}
	given = p.given
	if p.sent {
		err = l.closed // which does not change any more
	}
	l.leave(p)
	return left, given, err
}

// withdraw is the end of Enter for one whose wait was ended.
func (l *Line[T]) withdraw(p *place[T], ended context.Context) (left T, given bool, err error) {
	l.mu.Lock()
	passed := p != l.first && p.previous == nil // it is not in the line any more
	if !passed {
		l.remove(p)
	}
	l.mu.Unlock()
	if passed {
		turn := <-p.turn
		if given = p.given; given || !p.sent && !l.Pass(turn) {
			left = turn
		}
	}
	l.leave(p)
	return left, given, context.Cause(ended)
}

// Close ends all waits for this reason, also those that would begin. Whoever has the turn keeps it, and who
// finds the line empty still gets it.
func (l *Line[T]) Close(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != nil {
		return
	}
	l.closed = reason
	var none T
	for p := l.first; p != nil; p = l.first {
		l.remove(p)
		p.sent = true
		p.turn <- none
	}
}

// leave has a place used again. Whoever waited there has taken what was sent, or it was taken out of the line
// before anything was: so nobody else has it any more.
func (l *Line[T]) leave(p *place[T]) {
	p.wants, p.given, p.sent = nil, false, false
	l.left.Put(p)
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
	next := l.first
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
	p, _ := l.left.Get().(*place[T])
	if p == nil {
		p = &place[T]{turn: make(chan T, 1)}
	}
	p.wants = wants
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
