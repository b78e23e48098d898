package model

func (c *config) lingerSteps() []step {
	if !c.anyLingers() {
		return nil
	}
	return lingerSteps
}

func (c *config) tryingSteps() []step {
	switch {
	case !c.anyLingers():
		return nil
	case c.bugs.wantEndsATurn:
		return lateSteps
	default:
		return tryingSteps
	}
}

// anyLingers reports whether some process does.
func (c *config) anyLingers() bool { return c.lingers != [maxClients]bool{} }

// lingerSteps are of client n.
var lingerSteps = []step{
	{"parks", true, func(w *world, n int) bool { return w.clients[n].turn == parks }, (*world).park},
	{"linger ends", true, func(w *world, n int) bool {
		return w.parked(n) && !w.clients[n].closing && !w.bugs.noLingerTimer
	}, (*world).unpark},
	{"try", false, func(w *world, n int) bool { return w.clients[n].tries > 0 }, (*world).try},
	{"shut down", false, func(w *world, n int) bool { return w.closes[n] && !w.clients[n].closing }, (*world).shutDown},
}

// tryingSteps are of tenure n, whose process lives.
var tryingSteps = []step{
	{"asks once more", true, func(w *world, n int) bool {
		return w.tenures[n].linger.stage == pauses && w.goesOnTrying(id(n+1))
	}, func(w *world, n int) { w.askOnceMore(id(n + 1)) }},
	{"asks too early", false, func(w *world, n int) bool {
		return w.faults[mute] > 0 && w.tenures[n].linger.stage == pauses && !w.bugs.unbounded && w.answerUnderWay(id(n+1))
	}, func(w *world, n int) {
		w.faults[mute]--
		w.tenures[n].linger.owed = nobody
		w.askOnceMore(id(n + 1))
	}},
	{"unlock what was tried", true, func(w *world, n int) bool {
		x := &w.tenures[n]
		return x.linger.tried && x.inUse && w.owned(id(n+1)).kept != id(n+1)
	}, func(w *world, n int) { w.unlockTried(id(n + 1)) }},
	{"parks what was tried", true, func(w *world, n int) bool { return w.tenures[n].linger.stage == leaves },
		func(w *world, n int) { w.parkTried(id(n + 1)) }},
}

// lateSteps are of tenure n, whose process lives, where a bug adds them.
var lateSteps = []step{
	{"Want is obeyed late", true, func(w *world, n int) bool { return w.tenures[n].linger.doomed },
		func(w *world, n int) { w.obeyLate(id(n + 1)) }},
}

// lingers reports whether it ends a linger, which may take any time.
func (s *step) lingers() bool { return s.name == "linger ends" }
