package model

// What the goroutines of a process do.

// lock joins the line, or has the turn at once.
func (w *world) lock(c int) {
	p := &w.clients[c]
	p.calls--
	if p.turn == noTurn {
		p.turn = given
	} else {
		p.line++
	}
}

// begin is what a goroutine does with its turn: it goes on with what was left to it.
func (w *world) begin(c int) {
	p := &w.clients[c]
	t := p.kept
	if t == nobody {
		w.compete(c)
		return
	}
	x := w.tenure(t)
	switch {
	case x.phase == waiting:
		p.turn = waits
		if !w.bugs.heirDoesNotAsk {
			w.ask(t)
		}
	case !w.due(x):
		w.hold(t)
	case x.command != noCommand && !w.bugs.offerUnsettled:
		// An acquire of it may run after whatever ends it; so it is released, which waits for the answer.
		w.end(t)
		w.compete(c)
	case w.bugs.holdWhileOffered && w.tokensLeft(x):
		f := w.fresh(c)
		w.tenure(f).old = t
		w.send(f)
		w.hold(t)
	case w.bugs.sameID:
		x.phase, x.old = waiting, t
		p.turn = waits
		w.send(t)
	default:
		w.offerFor(c, t)
	}
}

// compete asks for the lock under a fresh id.
func (w *world) compete(c int) {
	p := &w.clients[c]
	p.kept = w.fresh(c)
	p.turn = waits
	w.send(p.kept)
}

// offerFor gives up t for a fresh id. Nobody of the process holds until the answer is known.
func (w *world) offerFor(c int, t id) {
	p := &w.clients[c]
	w.tenure(t).phase = offered
	p.kept = w.fresh(c)
	p.turn = waits
	w.tenure(p.kept).old = t
	w.send(p.kept)
}

// due reports whether the next goroutine must offer the tenure rather than hold it.
func (w *world) due(x *tenure) bool {
	if x.used == 0 { // or processes could offer each other what none of them has used
		return false
	}
	return x.left <= 0 || !w.tokensLeft(x)
}

func (w *world) tokensLeft(x *tenure) bool { return x.block && x.used <= w.block }

// unlock leaves the lock to the next in line, or releases it, or keeps it.
func (w *world) unlock(c int) {
	p := &w.clients[c]
	w.tenure(p.kept).inUse = false
	if w.mayRead(p.kept) { // nobody can go on with it as a writer
		w.end(p.kept)
		p.kept = nobody
	}
	if w.mayPark(c) {
		p.turn = parks
		return
	}
	w.pass(&p.side)
}

// pass ends a turn. What was kept goes to the next in line; if there is nobody, it ends.
func (w *world) pass(p *side) {
	if p.line > 0 {
		p.line--
		p.turn = given
		return
	}
	p.turn = noTurn
	if p.kept != nobody {
		w.end(p.kept)
		p.kept = nobody
	}
}

// end begins the release of a tenure, which is sent when none of its commands is unanswered.
func (w *world) end(t id) {
	x := w.tenure(t)
	x.phase, x.released = ending, false
}

// cancelGiven is a context that ends just when the turn has come.
func (w *world) cancelGiven(c int) {
	p := &w.clients[c]
	if w.bugs.turnDropped {
		p.turn = noTurn
		return
	}
	w.pass(&p.side)
}

// cancelWaiting is a context that ends while its goroutine waits for an answer or in the queue.
func (w *world) cancelWaiting(c int) {
	p := &w.clients[c]
	x := w.tenure(p.kept)
	x.aborted = x.command != noCommand
	if w.bugs.onlyFreshReleased && p.line == 0 && x.old != nobody {
		w.tenure(x.old).phase = over
		x.old = nobody
	}
	if p.line > 0 && !w.bugs.heirTries { // whoever inherits it waits
		x.linger.tried, x.linger.stage = false, noStage
	}
	w.pass(&p.side)
}

// lose ends a hold that Redis has given to somebody else, or will.
func (w *world) lose(t id, to phase) {
	p, x := w.owned(t), w.tenure(t)
	x.inUse = false
	x.phase = to
	w.stopSharing(t)
	if x.command != noCommand || x.loose && !w.bugs.strayIsIgnored {
		w.end(t) // what is under way may queue it again
	}
	if p.sharing.kept == t {
		p.sharing.kept = nobody
	}
	if p.kept != t {
		return
	}
	if w.bugs.lossLeavesIt && p.turn == noTurn {
		x.phase, x.told = held, x.token
		if to == lapsed {
			w.leaseEnds()
		}
		return
	}
	if w.bugs.lossIsPassedOn && p.turn == holds && p.line > 0 {
		x.phase, x.told = held, x.token
		if to == lapsed {
			w.leaseEnds()
		}
		w.pass(&p.side)
		return
	}
	p.kept = nobody
	if p.turn == holds {
		w.pass(&p.side)
	}
}

// hold is a goroutine's return from Lock.
func (w *world) hold(t id) {
	p, x := w.owned(t), w.tenure(t)
	token := x.token + x.used
	x.used++
	if !w.bugs.turnWhileReleased {
		x.phase = held
	}
	x.inUse, x.reading.weak = true, false
	p.turn, p.kept = holds, t
	if x.used > 1 {
		x.left--
		w.handedOn(t)
	}
	w.entered(t, token)
}
