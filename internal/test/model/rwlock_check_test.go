package model

// risen checks the token of a new hold. In the model readers have that of the last writer before them: which
// new one the server's clock gives them is checked of traces.
func (w *world) risen(t id, token int8) {
	switch gentle := w.tenure(t).gentle(); {
	case !gentle && token <= w.seen.last:
		w.violated(rising, "t%d holds with token %d after %d", t, token, w.seen.last)
	case gentle && token < w.seen.wrote:
		w.violated(rising, "t%d reads with token %d after a writer's %d", t, token, w.seen.wrote)
	case w.readWrite && !gentle:
		w.seen.wrote = token
	}
	w.seen.last = max(w.seen.last, token)
}

// trustedRightly reports whether what a tenure holds is so in Redis.
func (w *world) trustedRightly(t id) bool {
	r, x := &w.redis, w.tenure(t)
	reads := r.reads(t) && r.shares.leased.has(t)
	return r.owner == t && !x.reading.shared || reads && x.gentle()
}

// alwaysShared is what else must be true after every step of a read-write lock.
func (w *world) alwaysShared() {
	if !w.readWrite {
		return
	}
	if r := &w.redis; r.owner != nobody && r.shares.readers != 0 {
		w.violated(exclusion, "in Redis t%d writes, and others read", r.owner)
	}
	for c := range w.processes {
		if h := &w.clients[c].sharing.side; h.line > 0 && h.turn == noTurn {
			w.violated(deserted, "%d stand in the line of the readers of c%d, and nobody has the turn", h.line, c)
		}
	}
	for n := range w.tenures {
		if t := id(n + 1); w.tenures[n].reading.pruned && w.redis.reads(t) {
			w.violated(orphan, "t%d reads again, whose lease was over", t)
		}
	}
}

// overtaking checks that no writer is queued before a reader that is granted the lock.
func (w *world) overtaking(t id) {
	for _, q := range w.redis.queue[:w.redis.queued] {
		if q == t {
			return
		}
		if !w.tenure(q).reading.reader && !w.owned(q).dead && w.owned(q).link == up {
			w.violated(overtaken, "t%d reads, and t%d was queued before it", t, q)
		}
	}
}

// joined checks that readers of a process do not join each other for ever while somebody else waits.
func (w *world) joined(t id) {
	r, x, p := &w.redis, w.tenure(t), w.owned(t)
	if r.queued == 0 || w.takenUnknowingly(x) {
		return
	}
	if first := w.owned(r.queue[0]); first.dead && first.link == halfOpen {
		return // it asks no more, and nobody can know
	}
	if !w.lazy && p.link != up {
		return
	}
	for _, m := range p.inbox[:p.unread] {
		if m.kind == want {
			return
		}
	}
	x.reading.joins++
	if !x.reading.contended {
		x.reading.unasked++
	}
	losses := w.allowed[mute] + w.allowed[kill] + w.allowed[half]
	if most := w.alone*(1+losses) + w.budget; x.reading.joins > most {
		w.violated(hunger, "%d have joined t%d while others are queued", x.reading.joins, t)
	}
}

// whenQuiet checks what must be true when nothing will happen by itself but that holds end: nobody waits who
// could be granted the lock.
func (w *world) whenQuiet() {
	r := &w.redis
	if !w.readWrite || r.free() {
		return // at rest it must not stay so
	}
	for _, t := range r.queue[:r.queued] {
		if w.owned(t).dead && w.owned(t).link == down {
			continue
		}
		if r.fits(w.tenure(t).reading.reader) {
			w.violated(wake, "t%d is next, and the lock is not granted to it", t)
		}
		break
	}
	for n := range w.tenures {
		t, x := id(n+1), &w.tenures[n]
		if x.phase == waiting && x.placed && !r.owns(t) && r.place(t) < 0 {
			w.violated(dropped, "t%d was queued and always connected, and lost its place", t)
		}
	}
}

// doom marks the entries of a process that let a lease end. To grant the lock to them could cost another one.
func (w *world) doom(t id) {
	w.each(w.clientOf(t), func(q id, x *tenure) { x.reading.doomed = w.redis.place(q) >= 0 })
}

// looked checks that whoever asks finds them gone, unless it is of that process itself, which reacts.
func (w *world) looked(asker id) {
	for _, q := range w.redis.queue[:w.redis.queued] {
		if w.tenure(q).reading.doomed && w.owned(q) != w.owned(asker) {
			w.violated(slow, "t%d is queued, whose process has let a lease end", q)
		}
	}
	w.forgiven()
}

// forgiven: somebody else had the lock before anybody looked.
func (w *world) forgiven() {
	for n := range w.tenures {
		w.tenures[n].reading.doomed = false
	}
}
