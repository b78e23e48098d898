package model

// step is a kind of thing that can happen, to a client or to a tenure or to Redis.
type step struct {
	name   string
	itself bool // happens by itself, sooner or later: the system is at rest only when none of these can
	can    func(w *world, n int) bool
	do     func(w *world, n int)
}

func (s *step) String() string { return s.name }

// clientSteps are of client n.
var clientSteps = []step{
	{"lock", false, func(w *world, n int) bool {
		return w.clients[n].calls > 0 && (!w.polls[n] || w.clients[n].turn == noTurn)
	}, (*world).lock},
	{"begin", true, func(w *world, n int) bool { return w.clients[n].turn == given }, (*world).begin},
	{"unlock", true, (*world).canUnlock, (*world).unlock},
	{"cancel in line", false, func(w *world, n int) bool { return w.faults[cancel] > 0 && w.clients[n].line > 0 },
		func(w *world, n int) { w.faults[cancel]--; w.clients[n].line-- }},
	{"cancel with the turn", false, func(w *world, n int) bool { return w.faults[cancel] > 0 && w.clients[n].turn == given },
		func(w *world, n int) { w.faults[cancel]--; w.cancelGiven(n) }},
	{"cancel waiting", false, func(w *world, n int) bool { return w.faults[cancel] > 0 && w.clients[n].awaitsRedis() },
		func(w *world, n int) { w.faults[cancel]--; w.cancelWaiting(n) }},
	{"trust ends", false, func(w *world, n int) bool { return w.faults[lapse] > 0 && w.keeps(n) },
		func(w *world, n int) { w.faults[lapse]--; w.lose(w.clients[n].kept, lapsed) }},
	{"renewal fails", false, func(w *world, n int) bool { return w.keeps(n) && !w.redis.owns(w.clients[n].kept) },
		func(w *world, n int) { w.renew(w.clients[n].kept) }},

	{"message", true, func(w *world, n int) bool { return w.clients[n].unread > 0 }, (*world).deliver},
	{"want lost", false, func(w *world, n int) bool {
		return w.faults[mute] > 0 && w.clients[n].unread > 0 && w.clients[n].inbox[0].mayBeLost()
	}, func(w *world, n int) { w.faults[mute]--; w.skip(n) }},

	{"subscription breaks", false, func(w *world, n int) bool {
		return w.faults[kill] > 0 && (w.clients[n].link == up || w.clients[n].link == replica)
	}, func(w *world, n int) { w.faults[kill]--; w.disconnect(n, down) }},
	{"subscription half open", false, func(w *world, n int) bool { return w.faults[half] > 0 && w.clients[n].link == up },
		func(w *world, n int) { w.faults[half]--; w.disconnect(n, halfOpen) }},
	{"server sees the half", false, func(w *world, n int) bool { return w.clients[n].link == halfOpen },
		func(w *world, n int) { w.disconnect(n, down) }},
	{"subscribe", true, func(w *world, n int) bool {
		return (w.clients[n].link == halfOpen || w.clients[n].link == down) && w.wantsInbox(n)
	}, (*world).subscribe},
	{"process ends", false, func(w *world, _ int) bool { return w.faults[crash] > 0 },
		func(w *world, n int) { w.faults[crash]--; w.crash(n, down) }},
	{"host ends", false, func(w *world, n int) bool {
		return w.faults[crash] > 0 && w.faults[half] > 0 && w.clients[n].link == up
	},
		func(w *world, n int) { w.faults[crash]--; w.faults[half]--; w.crash(n, halfOpen) }},
}

// deadSteps are of client n, whose process has ended.
var deadSteps = []step{
	{"server sees the end", false, func(w *world, n int) bool { return w.clients[n].link == halfOpen },
		func(w *world, n int) { w.clients[n].link = down; w.poll() }},
}

// tenureSteps are of tenure n, whose process lives.
var tenureSteps = []step{
	{"runs", true, func(w *world, n int) bool { return w.tenures[n].command == sent }, func(w *world, n int) {
		a := w.run(id(n + 1))
		w.tenures[n].command, w.tenures[n].answer = answered, a
	}},
	{"runs, answer lost", false, func(w *world, n int) bool { return w.faults[lost] > 0 && w.tenures[n].command == sent },
		func(w *world, n int) {
			w.faults[lost]--
			w.tenures[n].loose = true
			w.run(id(n + 1))
			if w.bugs.lostIsBusy {
				w.forgetAttempt(id(n + 1))
			}
		}},
	{"strays", false, func(w *world, n int) bool { return w.faults[stray] > 0 && w.tenures[n].command == sent && !w.strays(n) },
		func(w *world, n int) { w.faults[stray]--; w.goAstray(n) }},
	{"is answered", true, func(w *world, n int) bool { return w.tenures[n].command == answered },
		func(w *world, n int) { w.read(id(n + 1)) }},
	{"polls again", false, (*world).goesOn, func(w *world, n int) { w.send(id(n + 1)) }},
	{"answer unheard", true, func(w *world, n int) bool { return w.tenures[n].command == answered && w.tenures[n].aborted },
		func(w *world, n int) { w.drop(id(n + 1)) }},
	{"is released", true, (*world).canRelease, func(w *world, n int) { w.releaseIDs(n); w.finish(n) }},
	{"is released, answer lost", false, func(w *world, n int) bool { return w.faults[lost] > 0 && w.canRelease(n) },
		func(w *world, n int) { w.faults[lost]--; w.releaseIDs(n) }},
}

// rollSteps are of tenure n as well.
var rollSteps = []step{
	{"is looked for", true, func(w *world, n int) bool { return w.tenures[n].look == looking }, (*world).looks},
	{"what was seen is read", true, (*world).canReadRoll, (*world).readsRoll},
}

// straySteps are of tenure n, whoever's it is.
var straySteps = []step{
	{"stray acquire arrives", true, func(w *world, n int) bool { return w.tenures[n].stray },
		func(w *world, n int) { w.acquires(id(n + 1)); w.gone(n) }},
	{"stray acquire vanishes", true, func(w *world, n int) bool { return w.tenures[n].stray }, (*world).gone},
	{"stray offer arrives", true, func(w *world, n int) bool { return w.tenures[n].strayOffer != nobody },
		func(w *world, n int) { w.offer(w.tenures[n].strayOffer, id(n+1)); w.offerGone(n) }},
	{"stray offer vanishes", true, func(w *world, n int) bool { return w.tenures[n].strayOffer != nobody }, (*world).offerGone},
}

// redisSteps are of Redis; n is 0.
var redisSteps = []step{
	{"lease expires", false, (*world).canExpire, (*world).expire},
	{"force", false, func(w *world, _ int) bool { return w.faults[force] > 0 && w.redis.owned() },
		func(w *world, _ int) { w.faults[force]--; w.force() }},
	{"restart", false, func(w *world, _ int) bool { return w.faults[restart] > 0 }, (*world).restart},
}

// keeps reports whether the client's tenure is held, by a goroutine or between two.
func (w *world) keeps(c int) bool {
	t := w.clients[c].kept
	return t != nobody && w.tenure(t).phase == held
}

// gone and offerGone: the copy is out of the way. A release that was answered before is sent once more.
func (w *world) gone(n int)      { w.tenures[n].stray, w.tenures[n].released = false, false }
func (w *world) offerGone(n int) { w.tenures[n].strayOffer, w.tenures[n].released = nobody, false }

func (w *world) strays(n int) bool { return w.tenures[n].stray || w.tenures[n].strayOffer != nobody }

// goAstray makes the command a stray one. It is sent again, unless nobody is there to do so.
func (w *world) goAstray(n int) {
	x := &w.tenures[n]
	x.loose, x.unqueued = true, false
	if x.offers == nobody {
		x.stray = true
	} else {
		x.strayOffer = x.offers
	}
	if x.aborted {
		w.drop(id(n + 1))
	}
}

func (w *world) canRelease(n int) bool {
	x := &w.tenures[n]
	settled := x.command == noCommand || w.bugs.cancelOvertakes
	return x.phase == ending && settled && (!x.released || !w.strays(n))
}

// releaseIDs runs the release of a tenure, and of the one that was offered for it if that may not be over.
func (w *world) releaseIDs(n int) {
	t, x := id(n+1), &w.tenures[n]
	if x.old == nobody {
		w.quietly(t, func() { w.release(t) })
		return
	}
	w.release(x.old, t)
}

// finish is the answer to that.
func (w *world) finish(n int) {
	t, x := id(n+1), &w.tenures[n]
	if old := x.old; old != nobody {
		x.old = nobody
		if old != t {
			w.finish(int(old) - 1)
		}
	}
	x.phase = over
	w.answerTries(t)
	if w.strays(n) && !w.bugs.strayIsIgnored {
		x.phase, x.released = ending, true
	}
}

// mayBeLost: others are repeated, or asked for.
func (m message) mayBeLost() bool { return m.kind == want || m.kind == tryAgain }

// disconnect loses what is under way to a client's inbox.
func (w *world) disconnect(c int, l link) {
	p := &w.clients[c]
	p.link, p.unread, p.inbox = l, 0, [maxInbox]message{}
	w.each(c, func(_ id, x *tenure) { x.placed = false })
}

func (w *world) subscribe(c int) {
	p := &w.clients[c]
	p.link = w.links[c]
	if p.link == down {
		p.link = up
	}
	w.post(p, message{kind: confirm})
}

// crash ends a process. What it had sent may still arrive.
func (w *world) crash(c int, l link) {
	w.disconnect(c, l)
	w.each(c, func(_ id, x *tenure) {
		stray, strayOffer := x.stray, x.strayOffer
		if x.command == sent && x.offers == nobody {
			stray = true
		} else if x.command == sent {
			strayOffer = x.offers
		}
		*x = tenure{phase: over, stray: stray, strayOffer: strayOffer, reading: x.reading.leftBehind(), linger: x.linger.leftBehind()}
	})
	w.clients[c] = client{dead: true, link: l, made: w.clients[c].made}
	if l == down {
		w.poll()
	}
}

// canExpire holds for a lease that nobody renews. That of a tenure whose trust ended, or whose process did,
// is about to.
func (w *world) canExpire(int) bool {
	t := w.redis.owner
	if t == nobody {
		return false
	}
	x := w.tenure(t)
	return x.phase == lapsed || w.owned(t).dead || x.phase != held && w.faults[expire] > 0
}

func (w *world) expire(int) {
	t := w.redis.owner
	if w.tenure(t).phase != lapsed && !w.owned(t).dead {
		w.faults[expire]--
	}
	if w.redis.shares.short == t {
		w.doom(t)
	}
	w.leaseEnds()
}

// leaseEnds makes the lock free. Every waiter knows when that is, or polls.
func (w *world) leaseEnds() {
	w.redis.owner = nobody
	if !w.readWrite { // there it stays: readers have it
		w.redis.token, w.redis.block = 0, false
	}
	w.everybodyAsks()
}

func (w *world) everybodyAsks() {
	for c := range w.processes {
		if !w.clients[c].dead {
			w.eachWaiting(c, w.ask)
		}
	}
}

// eachWaiting calls f for every tenure of a client that waits in the queue, or will.
func (w *world) eachWaiting(c int, f func(id)) {
	w.each(c, func(t id, x *tenure) {
		if x.phase == waiting && !w.polls[c] && !x.linger.tried {
			f(t)
		}
	})
}

// restart loses all but the token counter: tokens are not less than the server's clock. The connections
// break.
func (w *world) restart(int) {
	w.faults[restart]--
	for t := range w.redis.owners() {
		w.tenure(t).taken = max(w.tenure(t).token, w.redis.token)
	}
	w.redis = redis{counter: w.redis.counter}
	for c := range w.processes {
		w.disconnect(c, down)
		w.each(c, func(_ id, x *tenure) {
			if x.command == answered { // not read: it is sent again
				x.command, x.answer, x.loose = sent, answer{}, true
			}
		})
	}
}
