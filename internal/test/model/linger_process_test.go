package model

// What a process does that keeps a lock which nobody holds.

// mayPark reports whether Unlock keeps the lock.
func (w *world) mayPark(c int) bool {
	p := &w.clients[c]
	return w.lingers[c] && p.line == 0 && p.kept != nobody && w.tenure(p.kept).phase == held && w.unwanted(p.kept)
}

// unwanted reports whether nothing is known that forbids to keep the lock.
func (w *world) unwanted(t id) bool { return !w.owned(t).closing && !w.tenure(t).linger.contended }

// park leaves the tenure in the line. A Want that came before found nothing parked, and so did Shutdown. So
// Unlock looks again.
func (w *world) park(c int) {
	p := &w.clients[c]
	if p.line > 0 || p.kept == nobody {
		w.pass(&p.side)
		return
	}
	p.turn = noTurn
	x := w.tenure(p.kept)
	if w.bugs.tokenAgain {
		x.used--
	}
	if w.bugs.uncounted {
		x.left++
	}
	if !w.unwanted(p.kept) && !w.bugs.looksOnce {
		w.unpark(c)
	}
}

// unpark takes the tenure out of the line, and releases it. So nobody can begin a turn from it any more.
func (w *world) unpark(c int) {
	p := &w.clients[c]
	w.end(p.kept)
	if !w.bugs.turnWhileReleased {
		p.kept = nobody
	}
}

// heardWant is told that somebody queued behind the owner, or tried.
func (w *world) heardWant(c int, m message) {
	p, x := &w.clients[c], w.tenure(m.id)
	parked := p.kept == m.id && w.parked(c)
	switch {
	case !w.lingers[c]:
	case x.phase == waiting:
		x.linger.contended = !w.bugs.earlyWant
	case x.phase == held && !parked:
		x.linger.contended = !w.bugs.wantForgotten
	case parked && w.bugs.wantEndsATurn:
		x.linger.doomed = true
	case parked && w.bugs.wantEndsNothing:
		x.linger.contended = true
	case parked:
		w.unpark(c)
	}
	if m.asker != nobody {
		w.answerTry(m, parked)
	}
}

// obeyLate is what nobody may do who has not looked again: a goroutine may hold.
func (w *world) obeyLate(t id) {
	c := w.clientOf(t)
	w.tenure(t).linger.doomed = false
	if w.clients[c].kept == t && w.parked(c) {
		w.clients[c].kept = nobody
	}
	w.end(t)
}

// shutDown ends what waits, and what is parked. Who holds may unlock.
func (w *world) shutDown(c int) {
	p := &w.clients[c]
	p.closing, p.calls, p.tries, p.line = true, 0, 0, 0
	switch {
	case p.awaitsRedis():
		w.cancelWaiting(c)
	case p.turn == given:
		w.pass(&p.side)
	case w.parked(c) && !w.bugs.closeForgets:
		w.unpark(c)
	}
}
