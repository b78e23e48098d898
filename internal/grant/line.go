package grant

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/wait"
)

// The line: the goroutines of this process that want the same lock or permits stand in it, first come, first served.
// One goroutine at a time has the turn: it competes in Redis for the whole line, or it holds and hands off to the
// goroutines behind it.
//
// A goroutine in the line gets a hold or the turn from the goroutine before. The giver makes that hold, or passes the
// turn, under the queue's mutex. So whatever can go on without Redis always belongs to one goroutine.

// line is the line of one half of a queue. The queue's mutex guards the line. The zero value is empty.
type line struct {
	taken       bool    // a goroutine has the turn
	parked      *tenure // awaits the next goroutine that comes; nil while a goroutine has the turn
	length      int     // how many goroutines wait
	first, last *place
	closed      error     // why no further wait may begin; nil: waits may begin
	unused      sync.Pool // places without a waiter
}

// wish is what a goroutine in the line wants.
type wish struct {
	primitive *Primitive      // the hold would have the terms of primitive
	parent    context.Context // the parent of the hold's context
	permits   int
}

// gift is what a goroutine in the line gets: a hold, a permit, or the turn of the line.
type gift struct {
	hold   *Hold   // nil: the goroutine has a permit, or has the turn and must compete
	permit bool    // a permit without a hold: see allowance
	left   *tenure // with the turn: the tenure from the goroutine before; nil: no tenure
	none   error   // why the goroutine gets nothing: the line was closed; nil: it gets something
}

// has reports whether the gift is what the goroutine wanted: a hold or a permit.
func (g *gift) has() bool { return g.hold != nil || g.permit }

// place is the place of a goroutine that waits. The line uses a place and its channel again. Otherwise each turn
// under contention would cost two allocations.
type place struct {
	wish           wish
	came           chan gift // capacity 1: each use of the place sends one gift, so a send never blocks
	seen           time.Time // when TellLine first told of the place; zero: never
	previous, next *place
}

// enterLine waits in the line until the caller has a hold, a permit or the turn. If ctx ends first, enterLine returns
// its cause; if the line is closed, the reason. Then the caller has nothing: a hold or a turn that came as ctx ended
// has gone to the next goroutine, or was parked or given back. But a permit that came then is the caller's. enterLine
// calls waits before it waits; waits may be nil.
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
	if ended := ctx.Done(); ended == nil { // a receive costs half as much as a select of two
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

// first returns the gift for a goroutine that comes to an empty line. The caller holds the mutex.
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

// withdraw ends a wait in the line whose context has ended. It returns the cause. If a permit came first, it returns
// the permit: no other goroutine would give the permit back.
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
	if !waits { // send took the place out of the line, with a gift
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

// givenTurn returns the gift for w, which gets the turn of the line. left is the tenure from the goroutine before;
// nil: no tenure. If left is held and may go on, the gift is a hold of left. The caller holds the mutex.
func (w *wish) givenTurn(left *tenure, now time.Time) gift {
	if left != nil && !w.primitive.Shared {
		if hold := left.next(w, now); hold != nil {
			return gift{hold: hold}
		}
		if s := left.state(); s == wait.Held || s == wait.Parked {
			left.become(wait.Offered)
			// The tenure has no hold now. Shutdown waits until it is offered or given back.
			left.queue.At.Client.Count(1, -1)
		}
	}
	return gift{left: left}
}

// pass ends a turn of the line. If taken, the next goroutine has the turn, with the tenure left. Otherwise the line
// is empty, and the caller keeps that tenure.
func (q *Queue) pass(l *line, left *tenure) (taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.passNow(l, left, time.Now())
}

// passTurn ends a turn that leaves no tenure. The caller holds the mutex.
func (q *Queue) passTurn(l *line) { q.passNow(l, nil, time.Time{}) }

// passNow is pass for a caller that holds the mutex. If goroutines at the head of a shared line may join the held
// tenure, they join it, and need no turn.
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

// hasNext reports whether a goroutine waits in the line of q.alone.
func (q *Queue) hasNext() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.alone.line.hasNext()
}

// isEmpty reports whether no goroutine has the turn.
func (l *line) isEmpty() bool { return !l.taken }

// hasNext reports whether a goroutine waits in the line.
func (l *line) hasNext() bool { return l.length > 0 }

// take begins a turn, and returns the parked tenure, which has no hold; nil: no tenure is parked.
func (l *line) take() (left *tenure) {
	left, l.parked, l.taken = l.parked, nil, true
	return left
}

// send takes a place out of the line and sends the gift to its goroutine.
func (l *line) send(p *place, g gift) {
	l.remove(p)
	p.came <- g // has room
}

// close ends all waits in the line, and each later wait, with this reason. The goroutine that has the turn keeps the
// turn. If no goroutine has the turn, the next goroutine that comes still gets it.
func (l *line) close(reason error) {
	if l.closed != nil {
		return
	}
	l.closed = reason
	for l.first != nil {
		l.send(l.first, gift{none: reason})
	}
}

// disband gives the turn to all waiting goroutines at once: they need not wait for each other.
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

// leave frees a place for another use. The goroutine of the place has received its gift, or it took the place out of
// the line before a gift was sent. So no other goroutine uses the place, and leave needs no mutex.
func (l *line) leave(p *place) {
	p.wish = wish{}
	l.unused.Put(p)
}
