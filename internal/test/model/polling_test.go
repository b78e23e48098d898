package model

// Processes whose waiters poll, and never queue. Each of their goroutines has a tenure of its own. They have
// no inbox, and may not publish, nor ask who listens.

// attempt takes a lock that is free and that nobody queues for. Otherwise it grants a free lock to the head
// of the queue, and says that it is busy.
func (w *world) attempt(t id) answer {
	r := &w.redis
	if r.owner == t {
		return w.yours()
	}
	if r.owner == nobody && !w.bugs.pollOvertakes {
		w.quietly(t, func() { w.grant(nobody) })
	}
	if r.owner != nobody {
		return answer{kind: busy}
	}
	for _, q := range r.queue[:r.queued] {
		if !w.owned(q).dead {
			w.violated(overtaken, "t%d polls, and is granted the lock before t%d", t, q)
		}
	}
	w.own(t, w.lingers[w.clientOf(t)] && !w.bugs.unmarked)
	return w.yours()
}

// quietly does what a script does that may not publish if t polls. Whom it grants the lock asks at some time.
func (w *world) quietly(t id, script func()) {
	w.mute = w.polls[w.clientOf(t)]
	script()
	w.mute = false
}

// goesOn reports whether a tenure that polls may ask again. It need not: at rest, who polls pauses.
func (w *world) goesOn(n int) bool {
	x := &w.tenures[n]
	return w.polls[w.clientOf(id(n+1))] && x.phase == waiting && x.command == noCommand
}

// forgetAttempt is what nobody may do whose reply was lost: go on with another id, and leave the old one.
func (w *world) forgetAttempt(t id) {
	c := w.clientOf(t)
	w.forgetCommand(w.tenure(t))
	w.tenure(t).phase = over
	w.compete(c)
}

// polling has a process poll beside those that queue.
func polling(c config, n int) config {
	c.polls[n], c.links[n], c.lingers[n] = true, down, false
	return c
}
