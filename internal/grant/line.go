package grant

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/wait"
)

// The line: the goroutines of this process that want the same thing stand in it, first come, first served.
// One at a time has its turn: it competes in Redis for all, or it holds and hands off to those behind it.
//
// What a goroutine in the line gets is made by the one that leaves it to it, with the mutex of the queue: its
// hold, or the turn. So what can go on without Redis always belongs to one goroutine.

// line is the line of one half of a queue, whose mutex guards it. The zero value is empty.
type line struct {
	taken       bool    // a goroutine has the turn
	parked      *tenure // what awaits the next one that comes; nil while a goroutine has the turn
	length      int     // how many wait
	first, last *place
	closed      error     // why no wait may begin any more; nil: it may
	unused      sync.Pool // places without a waiter
}

// wish is what a goroutine in the line wants.
type wish struct {
	primitive *Primitive      // on whose terms it would hold
	parent    context.Context // from which the context of its hold is derived
	permits   int
}

// gift is what a goroutine in the line gets: it holds, it has a permit, or it has the turn of the line.
type gift struct {
	hold   *Hold   // nil: it has the turn, and must compete, unless it has a permit
	permit bool    // it has one, without a hold: see allowance
	left   *tenure // with the turn: what the one before has left; nil: nothing
	none   error   // why it gets nothing: the line was closed; nil: it gets something
}

// has reports whether it is what the goroutine stood in the line for.
func (g *gift) has() bool { return g.hold != nil || g.permit }

// place is the place of a goroutine that waits. A place and its channel are used again: under contention each turn
// would cost two otherwise.
type place struct {
	wish           wish
	came           chan gift // capacity 1: a gift has room, since one is sent for each use
	seen           time.Time // when it was first told; zero: it was not
	previous, next *place
}

// enterLine waits in the line until the caller holds, or has the turn. When ctx ends before, it returns the
// cause, and when the line is closed the reason. Then the caller has neither: what came as ctx ended has been
// left to the next, parked, or given back. A permit that came then is the caller's.
// waits is called when it waits; it may be nil.
func (q *Queue) enterLine(ctx context.Context, w wish, waits func()) (gift, error) {
	l := &q.half(w.primitive.Shared).line
	q.mu.Lock()
	if !l.taken {
		g := q.first(&w, l)
		q.mu.Unlock()
		return g, nil
	}
	if err := l.closed; err != nil {
		q.mu.Unlock()
		return gift{}, err
	}
	p := l.append(w)
	q.mu.Unlock()
	if waits != nil {
		waits()
	}
	var g gift
	if ended := ctx.Done(); ended == nil { // to wait for one thing costs half of what two cost
		g = <-p.came
	} else {
		select {
		case g = <-p.came:
		case <-ended:
			return q.withdraw(l, p, ctx)
		}
	}
	l.leave(p)
	if g.none != nil {
		return gift{}, g.none
	}
	return g, nil
}

// first is what the first one that comes to an empty line gets. The mutex is held.
func (q *Queue) first(w *wish, l *line) gift {
	if w.primitive.Shared {
		if hold := q.joinNow(w, time.Now(), counted); hold != nil {
			return gift{hold: hold}
		}
	}
	left := l.take()
	if left == nil {
		return gift{}
	}
	return w.givenTurn(left, time.Now())
}

// withdraw is the end of a wait in the line whose context has ended. It returns the cause, or a permit that
// came before that: no other goroutine would give that back.
//
//go:noinline
func (q *Queue) withdraw(l *line, p *place, ended context.Context) (gift, error) {
	q.mu.Lock()
	waits := p == l.first || p.previous != nil
	if waits {
		l.remove(p)
	}
	q.mu.Unlock()
	var g gift
	if !waits { // a gift came with it out of the line
		switch g = <-p.came; {
		case g.none != nil || g.permit:
		case g.hold != nil:
			turnOf(g.hold).undo()
		case !q.pass(l, g.left):
			g.left.discard()
		}
	}
	l.leave(p)
	if g.permit {
		return g, nil
	}
	return gift{}, context.Cause(ended)
}

// givenTurn is what the turn of the line is for w, with what the one before has left: a hold, where that is
// held and may go on. The mutex is held.
func (w *wish) givenTurn(left *tenure, now time.Time) gift {
	if left != nil && !w.primitive.Shared {
		if hold := left.next(w, now); hold != nil {
			return gift{hold: hold}
		}
		if s := left.state(); s == wait.Held || s == wait.Parked {
			left.become(wait.Offered)
			left.queue.At.Client.Count(1, -1) // no goroutine has it: Shutdown waits until it is offered or given back
		}
	}
	return gift{left: left}
}

// pass ends a turn of the line. It reports whether the next one has it, and what is left. Otherwise the line
// is empty, and what is left stays the caller's.
func (q *Queue) pass(l *line, left *tenure) (taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.passNow(l, left, time.Now())
}

// passTurn ends a turn that has left nothing. The mutex is held.
func (q *Queue) passTurn(l *line) { q.passNow(l, nil, time.Time{}) }

// passNow is pass with the mutex held. Those at the head of a shared line that may join what is held do so,
// and need no turn.
func (q *Queue) passNow(l *line, left *tenure, now time.Time) (taken bool) {
	q.locked()
	if q.shared != nil && l == &q.shared.line {
		q.letJoin(l, counted)
	}
	if l.first == nil {
		l.taken = false
		return false
	}
	l.send(l.first, l.first.wish.givenTurn(left, now))
	return true
}

// hasNext reports whether a goroutine waits in the line of those who exclude each other.
func (q *Queue) hasNext() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.alone.line.hasNext()
}

// isEmpty reports whether no goroutine has the turn.
func (l *line) isEmpty() bool { return !l.taken }

// hasNext reports whether a goroutine waits for it.
func (l *line) hasNext() bool { return l.length > 0 }

// take begins a turn with what was parked, and has no hold.
func (l *line) take() (left *tenure) {
	left, l.parked, l.taken = l.parked, nil, true
	return left
}

// send takes a place out of the line and gives its goroutine what it gets.
func (l *line) send(p *place, g gift) {
	l.remove(p)
	p.came <- g // has room
}

// close ends all waits in the line for this reason, and each wait that begins later. The goroutine that has the
// turn keeps it. A goroutine that finds the line empty still gets the turn.
func (l *line) close(reason error) {
	if l.closed != nil {
		return
	}
	l.closed = reason
	for l.first != nil {
		l.send(l.first, gift{none: reason})
	}
}

// disband gives everybody who waits the turn, at once: they need not wait for each other.
func (l *line) disband() {
	for l.first != nil {
		l.send(l.first, gift{})
	}
}

func (l *line) append(w wish) *place {
	p, _ := l.unused.Get().(*place)
	if p == nil {
		p = &place{came: make(chan gift, 1)}
	}
	p.wish, p.seen = w, time.Time{}
	if p.previous = l.last; l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.length++
	return p
}

func (l *line) remove(p *place) {
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

// leave has a place used again. Its goroutine has taken what was sent, or was taken out of the line before
// anything was: so no other goroutine has it any more. It needs no mutex.
func (l *line) leave(p *place) {
	p.wish = wish{}
	l.unused.Put(p)
}
