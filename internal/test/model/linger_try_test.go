package model

// What a TryLock does beside a lock that may linger.

// try is a TryLock. It takes what its own process has parked, or offers that. Else it asks Redis, beside the
// line.
func (w *world) try(c int) {
	p := &w.clients[c]
	p.tries--
	left := nobody
	if w.parked(c) {
		left = p.kept
		if !w.due(w.tenure(left)) {
			w.hold(left)
			return
		}
		if w.tenure(left).command != noCommand { // see begin
			w.end(left)
			p.kept, left = nobody, nobody
		}
	}
	t := w.fresh(c)
	w.tenure(t).linger = linger{tried: true, stage: first}
	if left != nobody {
		w.tenure(left).phase, w.tenure(t).old = offered, left
		p.turn, p.kept = tries, t
	}
	w.send(t)
}

// awaitsRedis reports whether whoever has the turn waits for an answer, or in the queue.
func (h *side) awaitsRedis() bool { return h.turn == waits || h.turn == tries }

// tryOnce is the script of a TryLock. It never queues. What lingers in another process is wanted, once,
// unless somebody is queued, who would be next, or that process does not listen.
func (w *world) tryOnce(t id) answer {
	x, r := w.tenure(t), &w.redis
	if w.bugs.queuesAtLast && x.linger.stage == second {
		return w.acquire(t)
	}
	a := w.attempt(t)
	switch {
	case a.kind == busy && x.linger.stage == first && w.marked() && r.queued == 0 && w.owned(r.owner) != w.owned(t) &&
		w.counts(w.owned(r.owner)):
		w.publish(message{kind: want, id: r.owner, asker: t})
		a.kind = asked
	case a.kind == busy && x.linger.stage == second:
		w.checkRefusal(t)
	}
	return a
}

// counts reports whether the server counts a process's inbox.
func (w *world) counts(p *client) bool { return p.link == up || p.link == halfOpen }

// refused is the answer to it.
func (w *world) refused(t id, a answer) {
	x := w.tenure(t)
	if a.kind == asked {
		x.linger.stage = pauses
		return
	}
	x.phase = over
	if p := w.owned(t); p.kept == t {
		if p.turn != tries {
			w.violated(spurned, "somebody waits for t%d, and is refused", t)
		}
		p.kept = nobody
		w.pass(&p.side)
	}
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

// holdTried is the return of a TryLock that has no turn. The line has no part in it.
func (w *world) holdTried(t id) {
	x := w.tenure(t)
	x.used, x.inUse = 1, true
	w.entered(t, x.token)
}

// unlockTried releases what such a TryLock has, or keeps it.
func (w *world) unlockTried(t id) {
	x := w.tenure(t)
	x.inUse = false
	if w.lingers[w.clientOf(t)] && w.unwanted(t) {
		x.linger.stage = leaves
		return
	}
	w.end(t)
}

// parkTried leaves it in the line, if nobody has the turn and nothing else is parked.
func (w *world) parkTried(t id) {
	c := w.clientOf(t)
	p := &w.clients[c]
	w.tenure(t).linger.stage = noStage
	if (p.turn != noTurn || p.kept != nobody) && !w.bugs.parksBeside {
		w.end(t)
		return
	}
	p.kept = t
	if !w.unwanted(t) && !w.bugs.looksOnce {
		w.unpark(c)
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
