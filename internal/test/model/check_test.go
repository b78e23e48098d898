package model

import "fmt"

// property is what must be true.
type property string

const (
	exclusion  property = "ME"          // no two goroutines hold, whosever they are, unless both read
	rising     property = "TOK"         // the token of a hold is greater than those of all before it
	trust      property = "TRUST"       // what a process trusts to hold is so in Redis
	wake       property = "WAKE"        // no waiter sleeps while the lock is free
	leak       property = "LEAK"        // the lock is not free while somebody is queued
	orphan     property = "ORPHAN"      // the lock is not owned for nobody
	staleEntry property = "STALE-ENTRY" // nothing is queued for nobody
	dropped    property = "DROPPED"     // who is queued and connected stays queued until it is granted the lock
	deserted   property = "LINE"        // when goroutines stand in a process's line, one of them has the turn
	hunger     property = "HUNGER"      // a process does not hand on inside for ever while another one is queued
	overtaken  property = "OVERTAKEN"   // a reader is not granted the lock before a writer that waits already
	spurned    property = "SPURNED"     // a TryLock gets what lingers, once its process has heard
	delayed    property = "DELAYED"     // who waits does not wait for a linger to end unless a message was lost
	slow       property = "SLOW"        // a process that does not react costs the others one lease
)

// violation is a property that does not hold.
type violation struct {
	property property
	what     string
	trace    []string
}

func (w *world) violated(p property, format string, args ...any) {
	w.broken = append(w.broken, violation{property: p, what: fmt.Sprintf(format, args...)})
}

// entered checks a new hold.
func (w *world) entered(t id, token int8) {
	x := w.tenure(t)
	if w.takenUnknowingly(x) {
		return
	}
	w.risen(t, token)
	for n := range w.tenures {
		y := &w.tenures[n]
		if y != x && y.inUse && !x.together(y) && !w.takenUnknowingly(y) {
			w.violated(exclusion, "t%d holds with token %d while t%d holds", t, token, n+1)
		}
	}
}

// takenUnknowingly excuses a holder from which the lock was taken by force or by a restart, until it is told.
// No protocol can exclude it; a store that looks at its token can.
func (w *world) takenUnknowingly(x *tenure) bool {
	return x.taken > 0 && x.taken >= x.token && x.told < x.token
}

// handedOn checks that a process does not keep the lock while another one is queued. While a want is unread,
// it cannot know.
func (w *world) handedOn(t id) {
	r, p := &w.redis, w.owned(t)
	if r.owner != t {
		return
	}
	for _, m := range p.inbox[:p.unread] {
		if m.kind == want {
			return
		}
	}
	others := false
	for _, q := range r.queue[:r.queued] {
		o := w.owned(q)
		others = others || (o != p || w.tenure(q).reading.reader) && o.link == up
	}
	if !others {
		w.seen.hunger = 0
		return
	}
	if w.seen.hunger++; w.seen.hunger > w.alone {
		w.violated(hunger, "%d hand-offs in the process of t%d while others are queued", w.seen.hunger, t)
	}
}

// always checks what must be true after every step.
func (w *world) always() {
	for c := range w.processes {
		if p := &w.clients[c]; p.line > 0 && p.turn == noTurn {
			w.violated(deserted, "%d stand in the line of c%d, and nobody has the turn", p.line, c)
		}
	}
	for n := range w.tenures {
		if x := &w.tenures[n]; x.phase == held && !w.trustedRightly(id(n+1)) && !w.takenUnknowingly(x) {
			w.violated(trust, "t%d is held, but t%d owns the lock", n+1, w.redis.owner)
		}
	}
	w.alwaysShared()
}

// atRest checks what must be true when nothing will happen by itself: all messages are read, all commands are
// answered, and every hold is unlocked.
func (w *world) atRest() {
	r := &w.redis
	for t := range r.owners() {
		if !w.owned(t).dead && w.tenure(t).phase != lapsed && !w.goesOn(int(t)-1) && !w.lingersOn(t) { // it finds that it owns it
			w.violated(orphan, "t%d owns the lock, and nobody holds", t)
		}
	}
	for _, t := range r.queue[:r.queued] {
		switch {
		case w.owned(t).dead: // the queue's time to live is for these, and whoever grants drops them
		case r.free():
			w.violated(leak, "the lock is free, and t%d is queued", t)
		case w.tenure(t).phase != waiting:
			w.violated(staleEntry, "t%d is queued, and nobody waits", t)
		}
	}
	for n := range w.tenures {
		t, x := id(n+1), &w.tenures[n]
		switch {
		case x.phase != waiting, w.polls[w.clientOf(t)]:
		case r.free(), r.owner != nobody && w.lingersOn(r.owner):
			w.violated(wake, "nobody holds, and t%d sleeps", t)
		case x.placed && !r.owns(t) && r.place(t) < 0:
			w.violated(dropped, "t%d was queued and always connected, and lost its place", t)
		}
	}
}
