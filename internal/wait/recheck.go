package wait

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// margin is added to the end of a lease: the key is gone one millisecond after.
const margin = 2 * time.Millisecond

// Ends is told that the holder's lease ends in d: when it does, the lock may be free without anybody saying so.
func (r *Room) Ends(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arm(d.Milliseconds())
}

// arm sets the timer of the next question for the holder's lease that ends in ms (negative: never), never later than the
// poll cap. One timer serves all waiters of the room.
func (r *Room) arm(ms int64) {
	d := r.poll
	if ends := time.Duration(ms)*time.Millisecond + margin; ms >= 0 && ends < d {
		d = ends
	}
	due := time.Now().Add(d)
	if !r.due.IsZero() && !due.Before(r.due) {
		return
	}
	r.due = due
	if r.timer == nil {
		r.timer = time.AfterFunc(d, r.tick)
	} else {
		r.timer.Reset(d)
	}
}

// tick asks for the oldest waiter alone: if the lock is free, whoever is the head is granted it by that question.
func (r *Room) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = time.Time{}
	if r.closing.Err() != nil {
		return
	}
	if e := r.waiters.Front(); e != nil {
		r.arm(-1)
		r.recheckNow(e.Value.(*Waiter))
	}
}

// recheckNow asks again for w, or once its unanswered acquire is answered (rule 4).
func (r *Room) recheckNow(w *Waiter) {
	if w.asking > 0 {
		w.again = true
		return
	}
	w.asking++
	r.server.Go(func() { r.ask(context.Background(), w, lua.Again) })
}

// RecheckAll asks again for every waiter, oldest first and one after the other: after a subscription was confirmed, since
// grants may have been lost before, and after Redis came back, since the entries may be gone. Each question is sent
// after the call. The clock of the server may be another one now, so no grant is dated by what was known before.
func (r *Room) RecheckAll() {
	r.mu.Lock()
	r.rounds++
	r.rounding++
	for e := r.waiters.Front(); e != nil; e = e.Next() {
		e.Value.(*Waiter).clock = 0
	}
	r.mu.Unlock()
	r.recheck(func(*Waiter) bool { return true })
}

// AskAround asks for every waiter, oldest first, and calls pause after each; one that is asking asks again at
// once. It ends when that returns false.
func (r *Room) AskAround(pause func() bool) {
	goOn := true
	r.each(func(*Waiter) bool { return goOn }, func() { goOn = pause() })
}

// ClockSet is told that the server's clock was set: no grant is dated by what was known of it before, and a
// lease may be over sooner than it was said to be.
func (r *Room) ClockSet() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for e := r.waiters.Front(); e != nil; e = e.Next() {
		e.Value.(*Waiter).clock = 0
	}
	if r.waiters.Len() > 0 {
		r.arm(0)
	}
}

func (r *Room) recheck(include func(*Waiter) bool) {
	defer func() {
		r.mu.Lock()
		r.rounding--
		r.mu.Unlock()
	}()
	r.each(include, func() {})
}

// each asks for some waiters, oldest first and one after the other.
func (r *Room) each(include func(*Waiter) bool, after func()) {
	r.mu.Lock()
	all := make([]*Waiter, 0, r.waiters.Len())
	for e := r.waiters.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*Waiter))
	}
	r.mu.Unlock()
	for _, w := range all {
		if include(w) && r.begin(w) {
			r.ask(context.Background(), w, lua.Again)
			after()
		}
	}
}

// begin marks w as asking, and reports false when somebody else asks for it or has to.
func (r *Room) begin(w *Waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.state != waiting || r.closing.Err() != nil {
		return false
	}
	if w.asking > 0 {
		w.again = true
		return false
	}
	w.asking++
	return true
}
