package model

import (
	"fmt"
	"slices"
)

// Further properties of permits.
const (
	surplus property = "SURPLUS" // holders trust no more permits than there are
	count   property = "COUNT"   // what is free and what is out are all that there are, and nobody has two shares
	told    property = "TOLD"    // who asks for more than there are is told
)

func (w *permitWorld) violated(p property, format string, args ...any) {
	w.broken = append(w.broken, violation{property: p, what: fmt.Sprintf(format, args...)})
}

// trusted is how many permits the processes believe to hold, but for what was taken from them unknowingly.
func (w *permitWorld) trusted() (n int8) {
	for i := range w.requests {
		if x := &w.requests[i]; x.phase == held && !w.takenUnknowingly(x) {
			n += x.n
		}
	}
	return n
}

// takenUnknowingly excuses a holder whose permits a delete or a restart took away, until it is told.
func (w *permitWorld) takenUnknowingly(x *request) bool {
	return x.taken > 0 && x.taken >= x.token && x.told < x.token
}

// entered checks a new hold.
func (w *permitWorld) entered(t id) {
	if n := w.trusted(); n > w.seen.most {
		w.violated(surplus, "t%d holds, and so %d are held of %d", t, n, w.seen.most)
	}
}

// passedOn checks that a process does not keep permits while another one is queued. While it is told so, or
// is answered, it cannot know.
func (w *permitWorld) passedOn(t id) {
	p := w.owned(t)
	for _, m := range p.inbox[:p.unread] {
		if m.kind == want || m.kind == granted {
			return
		}
	}
	others := false
	for _, q := range w.queue[:w.queued] {
		others = others || w.owned(q) != p && w.owned(q).link == up
	}
	if p.delegate != nobody && w.request(p.delegate).command != noCommand {
		return
	}
	if !others {
		w.seen.hunger = 0
		return
	}
	if w.seen.hunger++; w.seen.hunger > w.alone {
		w.violated(hunger, "%d times the process of t%d passes on permits while others are queued", w.seen.hunger, t)
	}
}

// scripted checks what a script has made of what there was.
func (w *permitWorld) scripted(before, after *pool[id]) {
	for _, h := range after.held {
		old := slices.IndexFunc(before.held, func(b holding[id]) bool { return b.id == h.id && b.token == h.token })
		switch {
		case h.n > int(w.request(h.id).n):
			w.violated(count, "t%d has %d permits, and wanted %d", h.id, h.n, w.request(h.id).n)
		case old >= 0:
			continue
		case h.token <= int64(w.seen.last):
			w.violated(rising, "t%d is given token %d, and %d was", h.id, h.token, w.seen.last)
		}
		w.seen.last = max(w.seen.last, int8(h.token+h.reserved))
		w.overtakes(before, after, h.id)
	}
	if n := after.capacity(); after.set && n != int(w.seen.capacity) {
		w.violated(count, "%d are free or out, of %d", n, w.seen.capacity)
	}
	if t := w.impossible(after); t != nobody && t != w.impossible(before) { // nobody says so: whoever waits polls
		w.poll()
	}
	out := int8(after.capacity() - after.free)
	w.seen.most = max(w.seen.capacity, min(w.seen.most, max(out, w.trusted())))
}

// impossible is the first who waits, if it is for more permits than there are.
func (w *permitWorld) impossible(p *pool[id]) id {
	for _, q := range p.queue {
		if !w.owned(q.id).dead {
			if q.n > int(w.seen.capacity) && !w.patient {
				return q.id
			}
			break
		}
	}
	return nobody
}

// overtakes checks that nobody was in front of who was granted permits, and still is queued.
func (w *permitWorld) overtakes(before, after *pool[id], t id) {
	for _, q := range before.queue {
		if q.id == t {
			return
		}
		stays := after.copies(q.id) == before.copies(q.id) && // else the one in front went, which a late copy has made two
			!slices.ContainsFunc(after.held, func(h holding[id]) bool { return h.id == q.id })
		aside := w.patient && q.n > int(w.seen.capacity)
		if stays && !aside && !w.passes && w.counted(q.id) {
			w.violated(overtaken, "t%d is granted permits before t%d", t, q.id)
		}
	}
}

// copies is how often an id is queued.
func (p *pool[I]) copies(t I) (n int) {
	for _, q := range p.queue {
		if q.id == t {
			n++
		}
	}
	return n
}

// always checks what must be true after every step.
func (w *permitWorld) always() {
	for c := range w.processes {
		if p := &w.clients[c]; p.line > 0 && p.delegate == nobody {
			w.violated(deserted, "%d stand in the line of c%d, and nobody competes", p.line, c)
		}
	}
	for n := range w.requests {
		if x := &w.requests[n]; x.phase == held && !w.takenUnknowingly(x) && !w.holdsInRedis(id(n+1)) {
			w.violated(trust, "t%d is held, and Redis does not know", n+1)
		}
	}
}

// whenQuiet checks what must be true when nothing will happen by itself but that holds end.
func (w *permitWorld) whenQuiet() {
	free := w.free
	for n, h := range w.held {
		x := &w.requests[n]
		if h.over {
			free += h.n
		} else if h.n > 0 && !w.owned(id(n+1)).dead && x.phase != held && x.phase != lapsed {
			w.violated(orphan, "t%d has permits, and nobody holds", n+1)
		}
	}
	blocked, first := false, true
	for _, t := range w.queue[:w.queued] {
		x := w.request(t)
		switch p := w.owned(t); {
		case p.dead && p.link == halfOpen: // the server takes it for alive
			blocked = blocked || !w.passes
		case p.dead:
		case x.phase == held && x.loose: // a late copy: its release removes it, and whoever grants drops it
		case x.phase != waiting:
			w.violated(staleEntry, "t%d is queued, and nobody waits", t)
		case x.n > w.seen.capacity && first && !w.patient:
			w.violated(told, "t%d is the first, and waits for %d permits of %d", t, x.n, w.seen.capacity)
		case x.n > w.seen.capacity:
		case x.n <= free && !blocked:
			w.violated(wake, "t%d is queued for %d permits, and %d are free", t, x.n, free)
		default:
			blocked = blocked || !w.passes
		}
		first = first && w.owned(t).dead && w.owned(t).link != halfOpen
	}
	for n := range w.requests {
		x := &w.requests[n]
		if x.phase != waiting {
			continue
		}
		place := slices.Index(w.queue[:w.queued], id(n+1))
		switch {
		case place < 0 && x.placed:
			w.violated(dropped, "t%d was queued and always connected, and lost its place", n+1)
		case place < 0:
			w.violated(wake, "t%d sleeps, and is not queued", n+1)
		}
	}
}
