package model

// What a process does with the answers and messages about its tenures.

// ask sends a waiting tenure's command, or sees to it that it is sent after the answer to the one before.
func (w *world) ask(t id) {
	x := w.tenure(t)
	switch {
	case x.command == noCommand:
		w.send(t)
	case !w.bugs.noPendingRecheck:
		x.again = true
	}
}

// send sends the offer as long as it is unanswered, then acquires.
func (w *world) send(t id) {
	x := w.tenure(t)
	x.command, x.offers, x.again, x.aborted, x.unqueued = sent, x.old, false, false, false
	if !w.bugs.lookStays {
		x.look = noLook
	}
}

// run is a command's script. A tenure's offers stays set until the answer is read.
func (w *world) run(t id) answer {
	x := w.tenure(t)
	var a answer
	if x.offers != nobody {
		a = w.offer(x.offers, t)
	} else {
		w.queuedTwice(t)
		a = w.acquires(t)
	}
	x.placed = a.kind == queued && w.owned(t).link == up
	return a
}

// acquires is the script of one who queues, or polls, or tries.
func (w *world) acquires(t id) answer {
	switch {
	case w.tenure(t).linger.tried:
		return w.tryOnce(t)
	case w.polls[w.clientOf(t)]:
		return w.attempt(t)
	default:
		return w.acquire(t)
	}
}

// read takes the answer to the tenure's command.
func (w *world) read(t id) {
	x := w.tenure(t)
	a, again := x.answer, x.again
	before := x.old
	if x.offers != nobody && x.offers == x.old {
		w.settle(t)
	}
	w.forgetCommand(x)
	switch {
	case x.phase == held && a.kind == owner && a.token > x.token:
		x.told = max(x.told, a.token-1)
		if !w.bugs.grantTwiceIgnored { // what it was granted before is gone
			w.lose(t, over)
			w.end(t)
		}
	case x.phase == held && a.kind == queued: // before it was granted, or after it was taken away
		x.loose = true
	case x.phase != waiting: // it holds by a message that came before, or its release is due now
	case a.kind == owner && w.stillTrue(t, a.token, a.moment):
		w.granted(t, a)
	case a.kind == gone && w.bugs.goneIsOwner:
		y := w.tenure(before)
		w.granted(t, answer{token: y.token + y.used, block: y.block})
	case x.linger.tried && (a.kind == busy || a.kind == asked || a.kind == queued):
		w.refused(t, a)
	case a.kind == busy && w.polls[w.clientOf(t)]: // it pauses
	case a.kind == queued && !again:
		x.asked = a.token
	default:
		w.send(t)
	}
}

// drop is an answer that nobody was there to read.
func (w *world) drop(t id) {
	x := w.tenure(t)
	again := x.again
	w.forgetCommand(x)
	if x.phase == waiting && again {
		w.send(t)
	}
}

func (w *world) forgetCommand(x *tenure) {
	x.command, x.offers, x.answer, x.again, x.aborted = noCommand, nobody, answer{}, false, false
}

// stillTrue reports whether a grant can be believed. The process counts the lease from the moment the grant
// was written, so it knows when that has ended since. It does not know that the ownership was taken away,
// unless it was told.
func (w *world) stillTrue(t id, token, moment int8) bool {
	x, r := w.tenure(t), &w.redis
	switch {
	case moment <= x.asked && !w.bugs.undated, token <= x.told && !w.bugs.forcedIsForgotten:
		return false
	case x.reading.reader:
		return r.reads(t) && r.shares.leased.has(t) && x.reading.since == moment || x.taken == token
	default:
		return r.owner == t && r.token == token || x.taken == token || w.bugs.arrivalTrust
	}
}

// granted is what the process does once it knows that it owns the lock.
func (w *world) granted(t id, a answer) {
	p, x := w.owned(t), w.tenure(t)
	if x.old != nobody {
		w.settle(t) // the offer must have run
	}
	x.phase, x.token, x.block, x.used, x.again = held, a.token, a.block, 0, false
	if a.others {
		x.left = min(x.left, w.budget)
		x.linger.contended = w.lingers[w.clientOf(t)] && !w.bugs.othersForgotten
	}
	if x.told == forever {
		w.lose(t, over)
		return
	}
	if x.reading.reader {
		w.grantedToReader(t, a.others)
		return
	}
	if x.linger.tried && p.kept != t {
		w.holdTried(t)
		return
	}
	w.redis.confirmed(t)
	if p.kept != t || p.turn == waits || p.turn == tries {
		w.hold(t)
	}
}

// settle is told that Redis has ended the id that was offered for t.
func (w *world) settle(t id) {
	x := w.tenure(t)
	y := w.tenure(x.old)
	if y.phase == offered {
		y.phase = over
		if y.loose && !w.bugs.strayIsIgnored || y.command != noCommand {
			w.end(x.old)
		}
	}
	x.old = nobody
}

// deliver takes the first message from a client's inbox.
func (w *world) deliver(c int) {
	p := &w.clients[c]
	m := p.inbox[0]
	w.skip(c)
	switch m.kind {
	case granted:
		w.heardGrant(m)
	case want:
		if x := w.tenure(m.id); x.phase == waiting || x.phase == held {
			x.left, x.reading.contended = min(x.left, w.budget), x.phase == held
		}
		w.heardWant(c, m)
	case recheck:
		w.eachWaiting(c, w.ask)
	case forced:
		w.heardForced(m)
	case confirm:
		w.each(c, w.confirmed)
	case tryAgain: // who tried waits for this to be read: see goesOnTrying
		w.tenure(m.id).linger.told = w.bugs.unbounded
	}
}

// skip removes the first message.
func (w *world) skip(c int) {
	p := &w.clients[c]
	copy(p.inbox[:], p.inbox[1:])
	p.inbox[maxInbox-1] = message{}
	p.unread--
}

func (w *world) heardGrant(m message) {
	x := w.tenure(m.id)
	switch x.phase {
	case waiting:
		if m.phantom || w.stillTrue(m.id, m.token, m.moment) {
			w.granted(m.id, answer{token: m.token, block: m.block, others: m.others, moment: m.moment})
		} else {
			w.ask(m.id)
		}
	case held:
		if m.token > x.token {
			x.told = max(x.told, m.token-1)
			if !w.bugs.grantTwiceIgnored { // what it was granted before is gone
				w.lose(m.id, over)
				w.end(m.id)
			}
		}
	case offered:
		if m.token > x.token {
			w.end(m.id)
		}
	case over, lapsed:
		w.end(m.id)
	}
}

// forever is the token of all that is taken away.
const forever = 100

func (w *world) heardForced(m message) {
	x := w.tenure(m.id)
	switch {
	case x.phase == held && (m.token >= x.token || m.token == 0):
		w.lose(m.id, over)
	case x.phase != waiting:
	case m.token == 0:
		x.told = forever
	default:
		x.told = m.token // an answer may be under way that says otherwise
	}
}

// confirmed is what follows a confirmed subscription: messages may have been lost before.
func (w *world) confirmed(t id, x *tenure) {
	switch x.phase {
	case waiting:
		switch {
		case w.bugs.noConfirmRecheck || x.linger.tried:
		case w.rolls && !w.polls[w.clientOf(t)]:
			w.lookFor(t)
		default:
			w.ask(t)
		}
	case held:
		w.renew(t)
	}
}

// renew asks whether the tenure still owns the lock.
func (w *world) renew(t id) {
	if !w.redis.owns(t) {
		w.lose(t, over)
	}
}
