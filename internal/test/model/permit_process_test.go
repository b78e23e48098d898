package model

import "slices"

// What the processes of a semaphore do.

// acquire is the next request of a process. For a single permit it stands in line while another one of the
// process competes for one.
func (w *permitWorld) acquire(c int) {
	p := &w.clients[c]
	n := w.calls[c][p.called]
	p.called++
	if n == 1 && w.holds > 0 && p.delegate != nobody {
		p.line++
		return
	}
	w.compete(c, n)
}

func (w *permitWorld) compete(c int, n int8) {
	p := &w.clients[c]
	t := id(int(p.made)*w.processes + c + 1)
	p.made++
	*w.request(t) = request{phase: waiting, n: n, command: sent, first: true}
	if n == 1 && w.holds > 0 && p.delegate == nobody {
		p.delegate = t
	}
}

// letIn has the next in line compete, when the delegate has what it wanted, or cannot have it.
func (w *permitWorld) letIn(t id) {
	p := w.owned(t)
	if p.delegate != t {
		return
	}
	p.delegate = nobody
	if p.line > 0 && !w.bugs.grantLetsNoneIn {
		p.line--
		w.compete(w.clientOf(t), 1)
	}
}

// othersWait is heard. Whoever stands in line competes for itself, and nothing is passed on.
func (w *permitWorld) othersWait(c int) {
	if w.bugs.yieldsNever {
		return
	}
	p := &w.clients[c]
	for p.line > 0 {
		p.line--
		w.compete(c, 1)
	}
	w.each(c, func(_ id, x *request) { x.left = 0 })
}

// ask sends a waiting request once more, or sees to it that it is sent after the answer.
func (w *permitWorld) ask(t id) {
	x := w.request(t)
	if x.phase != waiting {
		return
	}
	if x.again = x.command != noCommand; !x.again {
		w.send(t)
	}
}

func (w *permitWorld) send(t id) {
	x := w.request(t)
	x.command, x.first, x.again, x.aborted = sent, false, false, false
}

// poll has each process ask for its oldest waiter, once that has been answered.
func (w *permitWorld) poll() {
	for c := range w.processes {
		p := &w.clients[c]
		p.due, p.polled = !p.dead && !w.bugs.nobodyPolls, nobody
	}
}

// polledIs takes an answer, if it is that to a poll. When it is no waiter's any more, the next oldest is to
// ask.
func (w *permitWorld) polledIs(t id, waits bool) {
	if p := w.owned(t); p.polled == t {
		p.polled, p.due = nobody, p.due && !waits
	}
}

// read takes the answer to a request's command.
func (w *permitWorld) read(t id) {
	x := w.request(t)
	a, again, known := x.answer, x.again, x.queued
	x.command, x.answer, x.again, x.aborted = noCommand, packedAnswer{}, false, false
	w.polledIs(t, x.phase == waiting && a.kind == queued)
	if known && x.phase == waiting && a.kind != queued { // the next one may be no better off
		w.owned(t).due = true
	}
	switch {
	case x.phase == held && a.kind == owner && a.token > x.token:
		x.told = max(x.told, a.token-1)
		w.lose(t, over)
		w.end(t)
	case x.phase == held && a.kind == queued:
		x.loose = true
	case x.phase != waiting:
	case a.kind == owner && w.stillTrue(t, a.token):
		w.granted(t, a)
	case a.kind == tooMany:
		w.refused(t)
	case a.kind == queued && !again:
		x.asked, x.queued = a.token, true
		if known && a.placed && w.owned(t).link == up { // so are, very likely, the entries of the others
			w.each(w.clientOf(t), func(u id, _ *request) {
				if u != t {
					w.ask(u)
				}
			})
		}
		if a.others {
			w.othersWait(w.clientOf(t))
		}
	default:
		w.send(t)
	}
}

// refused is told that there are fewer permits.
func (w *permitWorld) refused(t id) {
	x := w.request(t)
	x.phase = over
	if x.loose && !w.bugs.refusedIsOver {
		w.end(t)
	}
	w.letIn(t)
}

// drop is an answer that nobody was there to read.
func (w *permitWorld) drop(t id) {
	x := w.request(t)
	again := x.again
	w.polledIs(t, false)
	x.command, x.answer, x.again, x.aborted = noCommand, packedAnswer{}, false, false
	if x.phase == waiting && again {
		w.send(t)
	}
}

// stillTrue reports whether a grant can be believed: see world.stillTrue.
func (w *permitWorld) stillTrue(t id, token int8) bool {
	x, h := w.request(t), w.held[t-1]
	if token <= x.asked || token <= x.told && !w.bugs.forcedForgotten {
		return false
	}
	return h.n > 0 && h.token == token && !h.over || x.taken == token
}

// granted is what the process does once it knows that it holds.
func (w *permitWorld) granted(t id, a packedAnswer) {
	x := w.request(t)
	x.phase, x.token, x.block, x.used, x.again = held, a.token, a.block, 0, false
	if x.left = min(w.holds, a.block); a.others {
		w.othersWait(w.clientOf(t))
	}
	if h := &w.held[t-1]; h.n > 0 && h.token == x.token {
		h.short = false // it is renewed soon
	}
	w.letIn(t)
	w.entered(t)
}

// giveBack ends a hold. The permits are for the next in line that may go on with them, or go back.
func (w *permitWorld) giveBack(t id) {
	x, p := w.request(t), w.owned(t)
	if x.n == 1 && p.line > 0 && x.left > 0 {
		p.line--
		x.used++
		x.left--
		w.passedOn(t)
		return
	}
	w.end(t)
}

// end begins the release of a request, which is sent when none of its commands is unanswered.
func (w *permitWorld) end(t id) {
	x := w.request(t)
	x.phase, x.released = ending, false
}

// cancelWaiting is a context that ends. Who is next in the line of a delegate inherits its place.
func (w *permitWorld) cancelWaiting(t id) {
	x, p := w.request(t), w.owned(t)
	x.aborted = x.command != noCommand
	switch {
	case p.delegate == t && w.bugs.turnDropped:
		p.delegate = nobody
	case p.delegate == t && p.line > 0:
		p.line--
		w.ask(t)
		return
	case p.delegate == t:
		p.delegate = nobody
	}
	w.end(t)
}

// lose ends a hold that Redis has taken back, or will.
func (w *permitWorld) lose(t id, to phase) {
	x, p := w.request(t), w.owned(t)
	if w.bugs.lossIsPassedOn && x.phase == held && to == lapsed && p.line > 0 { // the next one holds it
		p.line--
		w.held[t-1].over = true
		x.token = w.held[t-1].token
		return
	}
	x.phase = to
	if x.command != noCommand || x.loose && !w.bugs.strayIsIgnored {
		w.end(t)
	}
}

// deliver takes the first message from a client's inbox.
func (w *permitWorld) deliver(c int) {
	p := &w.clients[c]
	m := p.inbox[0]
	w.skip(c)
	switch m.kind {
	case granted:
		w.heardGrant(m)
	case want:
		w.othersWait(c)
	case recheck:
		w.each(c, func(t id, _ *request) { w.ask(t) })
	case forced:
		x := w.request(m.id)
		if x.phase == held && m.token >= x.token {
			w.lose(m.id, over)
		} else if x.phase == waiting {
			x.told = m.token
		}
	case confirm:
		w.each(c, w.confirmed)
	}
}

func (w *permitWorld) skip(c int) {
	p := &w.clients[c]
	copy(p.inbox[:], p.inbox[1:])
	p.inbox[maxPermitInbox-1] = message{}
	p.unread--
}

func (w *permitWorld) heardGrant(m message) {
	x := w.request(m.id)
	switch {
	case x.phase == waiting && w.stillTrue(m.id, m.token):
		w.granted(m.id, packedAnswer{token: m.token, block: m.moment, others: m.others})
	case x.phase == waiting:
		w.ask(m.id)
	case x.phase == held && m.token > x.token:
		x.told = max(x.told, m.token-1)
		w.lose(m.id, over)
		w.end(m.id)
	case x.phase == over, x.phase == lapsed:
		w.end(m.id)
	}
}

// confirmed is what follows a confirmed subscription.
func (w *permitWorld) confirmed(t id, x *request) {
	switch {
	case x.phase == waiting && !w.bugs.noConfirmRecheck:
		w.ask(t)
	case x.phase == held && !w.holdsInRedis(t):
		w.lose(t, over)
	}
}

func (w *permitWorld) holdsInRedis(t id) bool {
	h := w.held[t-1]
	return h.n > 0 && h.token == w.request(t).token && !h.over
}

// run is a command's script.
func (w *permitWorld) run(t id, first bool) packedAnswer {
	if !w.set { // the client declares how many there are
		w.script(nil, func(s *trade[id]) { s.change(int(w.seen.capacity)) })
	}
	var a packedAnswer
	w.script([]id{t}, func(s *trade[id]) { a = w.take(s, t, first) })
	w.request(t).placed = a.kind == queued && w.owned(t).link == up
	return a
}

func (w *permitWorld) take(s *trade[id], t id, first bool) packedAnswer {
	m := again
	if first {
		m = atFirst
	}
	a := s.take(t, w.demand(t), m)
	return packedAnswer{a.kind, int8(a.token), int8(a.block), a.others, a.placed}
}

// batch runs all that a process has sent or is to release, in one script.
func (w *permitWorld) batch(c int) {
	var gives []id
	w.each(c, func(t id, _ *request) {
		if w.canRelease(int(t) - 1) {
			gives = append(gives, t)
		}
	})
	callers := slices.Clone(gives)
	w.each(c, func(t id, x *request) {
		if x.command == sent {
			callers = append(callers, t)
		}
	})
	w.leave(gives)
	w.script(callers, func(s *trade[id]) {
		s.chunk = max(2, len(gives)+1)
		for _, t := range callers {
			if x := w.request(t); x.command == sent {
				x.answer, x.command = w.take(s, t, x.first), answered
				x.placed = x.answer.kind == queued && w.owned(t).link == up
			} else {
				s.give(t, 0)
			}
		}
	})
	for _, t := range gives {
		w.finish(int(t) - 1)
	}
}

// leave removes entries, which a script does before anything else.
func (w *permitWorld) leave(ids []id) {
	p := w.pool()
	p.queue = slices.DeleteFunc(p.queue, func(q place[id]) bool { return slices.Contains(ids, q.id) })
	w.pack(p)
}

func (w *permitWorld) giveAll(t id) {
	w.leave([]id{t})
	w.script([]id{t}, func(s *trade[id]) { s.give(t, 0) })
}

// script runs one, sends its messages, and checks what it has granted. callers are of one client.
func (w *permitWorld) script(callers []id, do func(s *trade[id])) {
	p := w.pool()
	before := *p
	before.held, before.queue = slices.Clone(p.held), slices.Clone(p.queue)
	mine := func(id) bool { return false }
	if len(callers) > 0 {
		mine = func(t id) bool { return w.clientOf(t) == w.clientOf(callers[0]) }
	}
	s := &trade[id]{
		pool: p, permitBugs: &w.bugs, mine: mine,
		mates: func(a, b id) bool { return w.clientOf(a) == w.clientOf(b) },
		alive: w.counted,
	}
	s.begin(0)
	do(s)
	s.commit()
	w.pack(p)
	w.scripted(&before, p)
	for _, d := range s.sent {
		w.publish(d)
	}
}

// counted reports whether the server counts a subscriber of an id's inbox.
func (w *permitWorld) counted(t id) bool {
	l := w.owned(t).link
	return l == up || l == halfOpen
}

func (w *permitWorld) publish(d dispatch[id]) {
	p := w.owned(d.id)
	if p.dead || p.link != up {
		return
	}
	m := message{kind: d.kind, id: d.id, token: int8(d.token), others: d.others, moment: int8(d.block)}
	if d.kind == want || d.kind == recheck { // they are for the client, and say nothing the second time
		m.id = nobody
		if slices.Contains(p.inbox[:p.unread], m) {
			return
		}
	}
	p.inbox[p.unread] = m
	p.unread++
}
