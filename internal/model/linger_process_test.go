package model

// What a process does that keeps a lock which nobody holds.

// mayPark reports whether Unlock keeps the lock.
func (w *world) mayPark(c int) bool {
	p := &w.clients[c]
	return w.lingers[c] && p.line == 0 && p.kept != nobody && w.tenure(p.kept).phase == held && w.unwanted(c)
}

// unwanted reports whether nothing is known that forbids to keep the lock.
func (w *world) unwanted(c int) bool {
	p := &w.clients[c]
	return !p.closing && !w.tenure(p.kept).linger.contended
}

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
	if !w.unwanted(c) && !w.bugs.looksOnce {
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

// answerTry tells who tried that it may ask again: when the release is answered, if there is one.
func (w *world) answerTry(m message, parked bool) {
	x, y := w.tenure(m.id), w.tenure(m.asker)
	if parked && (y.linger.stage == first || y.linger.stage == pauses) {
		y.linger.owed = m.id
	}
	if x.phase == ending && !w.bugs.answersEarly {
		y.linger.awaits = m.id
		return
	}
	w.publish(message{kind: tryAgain, id: m.asker})
}

// answerTries does so once the release of t is answered.
func (w *world) answerTries(t id) {
	for n := range w.tenures {
		if l := &w.tenures[n].linger; l.awaits == t {
			l.awaits = nobody
			w.publish(message{kind: tryAgain, id: id(n + 1)})
		}
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
	case p.turn == waits:
		w.cancelWaiting(c)
	case p.turn == given:
		w.pass(&p.side)
	case w.parked(c) && !w.bugs.closeForgets:
		w.unpark(c)
	}
}

// try is a TryLock. It takes what its own process has parked. Else it asks Redis, beside the line.
func (w *world) try(c int) {
	p := &w.clients[c]
	p.tries--
	if w.parked(c) && !w.due(w.tenure(p.kept)) {
		w.hold(p.kept)
		return
	}
	t := w.fresh(c)
	w.tenure(t).linger = linger{tried: true, stage: first}
	w.send(t)
}

// tryOnce is the script of a TryLock. It never queues. What lingers is wanted, once.
func (w *world) tryOnce(t id) answer {
	x := w.tenure(t)
	if w.bugs.queuesAtLast && x.linger.stage == second {
		return w.acquire(t)
	}
	a := w.attempt(t)
	switch {
	case a.kind == busy && x.linger.stage == first && w.marked():
		w.publish(message{kind: want, id: w.redis.owner, asker: t})
		a.kind = asked
	case a.kind == busy && x.linger.stage == second:
		w.checkRefusal(t)
	}
	return a
}

// refused is the answer to it.
func (w *world) refused(t id, a answer) {
	x := w.tenure(t)
	if a.kind == asked {
		x.linger.stage = pauses
		return
	}
	x.phase = over
	if x.loose && !w.bugs.strayIsIgnored {
		w.end(t)
	}
}

// goesOnTrying reports whether who tried asks once more: it was told, or cannot be told any more. The latter
// stands for the longest time that it waits.
func (w *world) goesOnTrying(t id) bool {
	if w.bugs.unbounded {
		return w.tenure(t).linger.told
	}
	return !w.answerUnderWay(t)
}

func (w *world) askOnceMore(t id) {
	w.tenure(t).linger.stage = second
	w.send(t)
}

// answerUnderWay reports whether who tried will be told that it may ask again, as far as nothing goes wrong.
func (w *world) answerUnderWay(t id) bool {
	if by := w.tenure(t).linger.awaits; by != nobody && w.tenure(by).phase == ending {
		return true
	}
	for n := range w.clients {
		p := &w.clients[n]
		for _, m := range p.inbox[:p.unread] {
			if m.kind == want && m.asker == t || m.kind == tryAgain && m.id == t {
				return true
			}
		}
	}
	return false
}

// holdTried is the return of a TryLock. The line has no part in it.
func (w *world) holdTried(t id) {
	x := w.tenure(t)
	x.used, x.inUse = 1, true
	w.entered(t, x.token)
}
