package model

// What the goroutines of a process do that read, and what becomes of their tenure.

// callRead joins those of its process that read, or the line.
func (w *world) callRead(c int) {
	p := &w.clients[c]
	h := &p.sharing.side
	h.calls--
	switch {
	case h.turn == noTurn && w.joins(c):
	case h.turn == noTurn:
		h.turn = given
	default:
		h.line++
	}
}

// joins has one more goroutine hold the tenure that others of its process hold, if it may.
func (w *world) joins(c int) bool {
	t := w.clients[c].sharing.holder
	if t == nobody || !w.admits(t) {
		return false
	}
	x := w.tenure(t)
	w.joined(t)
	if x.reading.contended {
		x.reading.handed++
	}
	x.reading.inside++
	w.entered(t, x.token)
	return true
}

func (w *world) admits(t id) bool {
	x := w.tenure(t)
	r := &x.reading
	return r.open && x.phase == held && (!r.contended || r.handed < w.budget || w.bugs.joinAfterWant)
}

// beginRead is what a goroutine does with its turn.
func (w *world) beginRead(c int) {
	h := &w.clients[c].sharing.side
	if w.joins(c) {
		if h.kept != nobody {
			w.end(h.kept)
			h.kept = nobody
		}
		w.pass(h)
		return
	}
	t := h.kept
	if t != nobody && w.tenure(t).phase == held { // granted before anybody looked
		w.share(t)
		return
	}
	if t == nobody {
		t = w.fresh(c)
		w.tenure(t).reading = reading{reader: true, shared: true}
	}
	w.tenure(t).reading.audible = w.listens(c)
	h.turn, h.kept = waits, t
	w.ask(t)
}

// listens reports whether the process would hear a message now.
func (w *world) listens(c int) bool {
	l := w.clients[c].link
	return l == up || l == replica || w.bugs.deafIsJoined
}

// grantedToReader is what the process does once it knows that a tenure of its readers owns the lock.
func (w *world) grantedToReader(t id, others bool) {
	x, h := w.tenure(t), &w.owned(t).sharing.side
	x.reading.contended = others
	if h.kept == t && h.turn == given {
		return // whoever has the turn finds it
	}
	w.share(t)
}

// share begins the first hold of a tenure, and lets others join: at once those in the line, who are no part
// of the budget.
func (w *world) share(t id) {
	x, h := w.tenure(t), &w.owned(t).sharing.side
	w.open(t)
	w.entered(t, x.token)
	if h.kept == t {
		h.kept = nobody
		w.pass(h)
	}
}

func (w *world) open(t id) {
	x, s := w.tenure(t), &w.owned(t).sharing
	x.phase, x.inUse = held, true
	r := &x.reading
	r.inside, r.joins, r.unasked = 1, 0, 0
	if r.audible {
		r.open, r.handed = true, 0
		s.holder = t
		for ; s.line > 0; s.line-- {
			r.inside++
			w.entered(t, x.token)
		}
	}
}

// stopReading is an Unlock. The last one releases.
func (w *world) stopReading(n int) {
	x := &w.tenures[n]
	if x.reading.inside--; x.reading.inside > 0 {
		return
	}
	x.inUse = false
	w.stopSharing(id(n + 1))
	w.end(id(n + 1))
}

// stopSharing lets nobody join any more.
func (w *world) stopSharing(t id) {
	x, s := w.tenure(t), &w.owned(t).sharing
	x.reading.open, x.reading.inside = false, 0
	if s.holder == t {
		s.holder = nobody
	}
}

// cancelReading is a context that ends while its goroutine waits.
func (w *world) cancelReading(c int) {
	h := &w.clients[c].sharing.side
	x := w.tenure(h.kept)
	x.aborted = x.command != noCommand
	w.pass(h)
}

// askDowngrade sends the downgrade of what a goroutine holds. It does not write from then on.
func (w *world) askDowngrade(c int) {
	p := &w.clients[c]
	p.sharing.downgrades--
	r := &w.tenure(p.kept).reading
	r.weak, r.downgrade = true, sent
	r.audible = w.listens(c)
}

// downgraded takes the answer. The tenure goes on as one that is shared, and the turn is passed on.
func (w *world) downgraded(n int) {
	x, t := &w.tenures[n], id(n+1)
	r, p := &x.reading, w.owned(id(n+1))
	reads, others := r.answer, r.others
	r.downgrade, r.answer, r.others = noCommand, false, false
	switch {
	case x.phase != held:
		return
	case !reads:
		w.lose(t, over)
		return
	}
	r.shared, r.contended = true, r.contended || others
	w.open(t)
	p.kept = nobody
	w.pass(&p.side)
}

// canUnlock: whoever waits for the downgrade does nothing else.
func (w *world) canUnlock(c int) bool {
	p := &w.clients[c]
	return p.turn == holds && w.tenure(p.kept).reading.downgrade == noCommand
}

// poll is what those who wait do every few seconds, where nothing else tells them what has become of others.
func (w *world) poll() {
	if w.readWrite {
		w.everybodyAsks()
	}
}

// wantsInbox reports whether a process opens its inbox.
func (w *world) wantsInbox(c int) bool {
	if w.polls[c] {
		return false
	}
	wants := !w.lazy
	w.eachWaiting(c, func(id) { wants = true })
	return wants
}
