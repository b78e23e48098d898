package model

// permitStep is a kind of thing that can happen, to a client or to a request or to Redis.
type permitStep struct {
	name   string
	itself bool // happens by itself, sooner or later
	can    func(w *permitWorld, n int) bool
	do     func(w *permitWorld, n int)
}

func (s *permitStep) String() string { return s.name }

// permitClientSteps are of client n, which lives.
var permitClientSteps = []permitStep{
	{"acquire", false, func(w *permitWorld, n int) bool {
		return int(w.clients[n].called) < len(w.calls[n])
	}, (*permitWorld).acquire},
	{"cancel in line", false, func(w *permitWorld, n int) bool { return w.faults[cancel] > 0 && w.clients[n].line > 0 },
		func(w *permitWorld, n int) { w.faults[cancel]--; w.clients[n].line-- }},
	{"polls", true, func(w *permitWorld, n int) bool {
		t := w.oldest(n)
		return w.clients[n].due && w.clients[n].polled == nobody && t != nobody && w.request(t).command == noCommand
	}, func(w *permitWorld, n int) { w.clients[n].polled = w.oldest(n); w.send(w.oldest(n)) }},
	{"batch runs", false, func(w *permitWorld, n int) bool { return w.ready(n) > 1 }, (*permitWorld).batch},
	{"message", true, func(w *permitWorld, n int) bool { return w.clients[n].unread > 0 }, (*permitWorld).deliver},
	{"want lost", false, func(w *permitWorld, n int) bool {
		return w.faults[mute] > 0 && w.clients[n].unread > 0 && w.clients[n].inbox[0].kind == want
	}, func(w *permitWorld, n int) { w.faults[mute]--; w.skip(n) }},
	{"subscription breaks", false, func(w *permitWorld, n int) bool { return w.faults[kill] > 0 && w.clients[n].link == up },
		func(w *permitWorld, n int) { w.faults[kill]--; w.disconnect(n, down) }},
	{"subscription half open", false, func(w *permitWorld, n int) bool { return w.faults[half] > 0 && w.clients[n].link == up },
		func(w *permitWorld, n int) { w.faults[half]--; w.disconnect(n, halfOpen) }},
	{"server sees the half", false, func(w *permitWorld, n int) bool { return w.clients[n].link == halfOpen },
		func(w *permitWorld, n int) { w.disconnect(n, down) }},
	{"subscribe", true, func(w *permitWorld, n int) bool { return w.clients[n].link != up }, (*permitWorld).subscribe},
	{"process ends", false, func(w *permitWorld, _ int) bool { return w.faults[crash] > 0 },
		func(w *permitWorld, n int) { w.faults[crash]--; w.crash(n, down) }},
	{"host ends", false, func(w *permitWorld, n int) bool {
		return w.faults[crash] > 0 && w.faults[half] > 0 && w.clients[n].link == up
	}, func(w *permitWorld, n int) { w.faults[crash]--; w.faults[half]--; w.crash(n, halfOpen) }},
}

// permitDeadSteps are of client n, whose process has ended.
var permitDeadSteps = []permitStep{
	{"server sees the end", false, func(w *permitWorld, n int) bool { return w.clients[n].link == halfOpen },
		func(w *permitWorld, n int) { w.clients[n].link = down; w.poll() }},
}

// givesBack is the step that ends a hold.
const givesBack = "gives back"

// requestSteps are of request n, whose process lives.
var requestSteps = []permitStep{
	{"runs", true, func(w *permitWorld, n int) bool { return w.requests[n].command == sent },
		func(w *permitWorld, n int) {
			a := w.run(id(n+1), w.requests[n].first)
			w.requests[n].command, w.requests[n].answer = answered, a
		}},
	{"runs, answer lost", false, func(w *permitWorld, n int) bool { return w.faults[lost] > 0 && w.requests[n].command == sent },
		func(w *permitWorld, n int) {
			w.faults[lost]--
			w.run(id(n+1), w.requests[n].first)
			w.requests[n].loose, w.requests[n].first = true, false
		}},
	{"strays", false, func(w *permitWorld, n int) bool {
		return w.faults[stray] > 0 && w.requests[n].command == sent && !w.requests[n].stray
	}, (*permitWorld).goAstray},
	{"is answered", true, func(w *permitWorld, n int) bool { return w.requests[n].command == answered },
		func(w *permitWorld, n int) { w.read(id(n + 1)) }},
	{"answer unheard", true, func(w *permitWorld, n int) bool {
		return w.requests[n].command == answered && w.requests[n].aborted
	}, func(w *permitWorld, n int) { w.drop(id(n + 1)) }},
	{givesBack, true, func(w *permitWorld, n int) bool { return w.requests[n].phase == held },
		func(w *permitWorld, n int) { w.giveBack(id(n + 1)) }},
	{"cancel waiting", false, func(w *permitWorld, n int) bool { return w.faults[cancel] > 0 && w.requests[n].phase == waiting },
		func(w *permitWorld, n int) { w.faults[cancel]--; w.cancelWaiting(id(n + 1)) }},
	{"trust ends", false, func(w *permitWorld, n int) bool { return w.faults[lapse] > 0 && w.requests[n].phase == held },
		func(w *permitWorld, n int) { w.faults[lapse]--; w.lose(id(n+1), lapsed) }},
	{"renewal fails", false, func(w *permitWorld, n int) bool {
		return w.requests[n].phase == held && !w.holdsInRedis(id(n+1))
	}, func(w *permitWorld, n int) { w.lose(id(n+1), over) }},
	{"is released", true, (*permitWorld).canRelease, func(w *permitWorld, n int) { w.giveAll(id(n + 1)); w.finish(n) }},
	{"is released, answer lost", false, func(w *permitWorld, n int) bool { return w.faults[lost] > 0 && w.canRelease(n) },
		func(w *permitWorld, n int) { w.faults[lost]--; w.giveAll(id(n + 1)) }},
}

// strayRequestSteps are of request n, whosever it is.
var strayRequestSteps = []permitStep{
	{"stray copy arrives", true, func(w *permitWorld, n int) bool { return w.requests[n].stray }, func(w *permitWorld, n int) {
		if w.set {
			w.script([]id{id(n + 1)}, func(s *trade[id]) { w.take(s, id(n+1), w.requests[n].strayFirst) })
		}
		w.gone(n)
	}},
	{"stray copy vanishes", true, func(w *permitWorld, n int) bool { return w.requests[n].stray }, (*permitWorld).gone},
	{"lease ends", false, (*permitWorld).canExpire, (*permitWorld).expire},
}

// poolSteps are of Redis; n is 0.
var poolSteps = []permitStep{
	{"capacity changes", false, func(w *permitWorld, _ int) bool { return w.set && int(w.changed) < len(w.changes) },
		(*permitWorld).changeCapacity},
	{"delete", false, func(w *permitWorld, _ int) bool { return w.faults[force] > 0 && w.set }, (*permitWorld).destroy},
	{"restart", false, func(w *permitWorld, _ int) bool { return w.faults[restart] > 0 }, (*permitWorld).restart},
}

// ready is how many commands of a client could run in one script.
func (w *permitWorld) ready(c int) (n int) {
	if !w.set {
		return 0
	}
	w.each(c, func(t id, x *request) {
		if x.command == sent || w.canRelease(int(t)-1) {
			n++
		}
	})
	return n
}

func (w *permitWorld) gone(n int) {
	w.requests[n].stray, w.requests[n].strayFirst, w.requests[n].released = false, false, false
}

// goAstray makes the command a stray one. It is sent again, unless nobody is there to do so.
func (w *permitWorld) goAstray(n int) {
	w.faults[stray]--
	x := &w.requests[n]
	x.loose, x.stray, x.strayFirst, x.first = true, true, x.first, false
	if x.aborted {
		w.drop(id(n + 1))
	}
}

func (w *permitWorld) canRelease(n int) bool {
	x := &w.requests[n]
	settled := x.command == noCommand || w.bugs.cancelOvertakes
	return x.phase == ending && settled && (!x.released || !x.stray)
}

// finish is the answer to a release.
func (w *permitWorld) finish(n int) {
	x := &w.requests[n]
	x.phase = over
	if x.stray && !w.bugs.strayIsIgnored {
		x.phase, x.released = ending, true
	}
}

// disconnect loses what is under way to a client's inbox.
func (w *permitWorld) disconnect(c int, l link) {
	p := &w.clients[c]
	p.link, p.unread, p.inbox = l, 0, [maxPermitInbox]message{}
	w.each(c, func(_ id, x *request) { x.placed = false })
}

func (w *permitWorld) subscribe(c int) {
	p := &w.clients[c]
	p.link = up
	p.inbox[p.unread] = message{kind: confirm}
	p.unread++
}

// crash ends a process. What it had sent may still arrive.
func (w *permitWorld) crash(c int, l link) {
	w.disconnect(c, l)
	w.each(c, func(_ id, x *request) {
		y := request{phase: over, n: x.n, stray: x.stray, strayFirst: x.strayFirst}
		if x.command == sent {
			y.stray, y.strayFirst = true, x.first
		}
		*x = y
	})
	p := &w.clients[c]
	*p = permitClient{dead: true, link: l, made: p.made, called: int8(len(w.calls[c]))}
	if l == down {
		w.poll()
	}
}

// canExpire holds for a lease that nobody renews.
func (w *permitWorld) canExpire(n int) bool {
	x, h := &w.requests[n], w.held[n]
	if h.n == 0 || h.over {
		return false
	}
	return x.phase == lapsed || w.owned(id(n+1)).dead || x.phase != held && w.faults[expire] > 0
}

// expire ends a lease. Whoever waits looks then, or polls.
func (w *permitWorld) expire(n int) {
	if x := &w.requests[n]; x.phase != lapsed && !w.owned(id(n+1)).dead {
		w.faults[expire]--
	}
	w.held[n].over = true
	w.poll()
}

// changeCapacity sets another number. When there are fewer, nobody says so: whoever waits polls.
func (w *permitWorld) changeCapacity(int) {
	goal := w.changes[w.changed]
	w.changed++
	fewer := goal < w.seen.capacity
	w.seen.capacity = goal
	w.seen.most = max(w.seen.most, goal)
	w.script(nil, func(s *trade[id]) { s.change(int(goal)) })
	if fewer {
		w.poll()
	}
}

// destroy deletes the semaphore. The next request of any client declares it again.
func (w *permitWorld) destroy(int) {
	w.faults[force]--
	w.takeAll()
	w.script(nil, (*trade[id]).destroy)
}

// restart loses all, and breaks the connections.
func (w *permitWorld) restart(int) {
	w.faults[restart]--
	w.takeAll()
	w.pack(&pool[id]{last: int64(w.last)})
	for c := range w.processes {
		w.disconnect(c, down)
		w.each(c, func(_ id, x *request) {
			if x.command == answered { // not read: it is sent again
				x.command, x.answer, x.loose, x.first = sent, packedAnswer{}, true, false
			}
		})
	}
}

func (w *permitWorld) takeAll() {
	for n, h := range w.held {
		if h.n > 0 && !h.over {
			w.requests[n].taken = h.token
		}
	}
}
