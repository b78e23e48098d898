package model

// ends reports whether it ends a hold, which may take any time.
func (s *step) ends() bool { return s.name == "unlock" || s.name == "stop reading" }

func (c *config) sharingSteps() []step { return c.ifReadWrite(sharingSteps) }
func (c *config) readingSteps() []step { return c.ifReadWrite(readingSteps) }
func (c *config) leftSteps() []step    { return c.ifReadWrite(leftSteps) }

func (c *config) ifReadWrite(steps []step) []step {
	if !c.readWrite {
		return nil
	}
	return steps
}

// sharingSteps are of client n, which reads.
var sharingSteps = []step{
	{"read", false, func(w *world, n int) bool { return w.clients[n].sharing.calls > 0 && !w.pollIsDue() }, (*world).callRead},
	{"begin reading", true, func(w *world, n int) bool { return w.clients[n].sharing.turn == given }, (*world).beginRead},
	{"cancel in line of readers", false, func(w *world, n int) bool { return w.faults[cancel] > 0 && w.clients[n].sharing.line > 0 },
		func(w *world, n int) { w.faults[cancel]--; w.clients[n].sharing.line-- }},
	{"cancel with the turn to read", false, func(w *world, n int) bool {
		return w.faults[cancel] > 0 && w.clients[n].sharing.turn == given
	}, func(w *world, n int) { w.faults[cancel]--; w.pass(&w.clients[n].sharing.side) }},
	{"cancel waiting to read", false, func(w *world, n int) bool {
		return w.faults[cancel] > 0 && w.clients[n].sharing.turn == waits
	}, func(w *world, n int) { w.faults[cancel]--; w.cancelReading(n) }},
	{"downgrade", false, func(w *world, n int) bool {
		p := &w.clients[n]
		return p.sharing.downgrades > 0 && w.canUnlock(n) && !w.tenure(p.kept).reading.weak
	}, (*world).askDowngrade},
	{"poll", true, func(w *world, n int) bool { return n == 0 && w.pollIsDue() && w.allAnswered() }, (*world).pollNow},
}

// readingSteps are of tenure n, whose process lives.
var readingSteps = []step{
	{"stop reading", true, func(w *world, n int) bool { return w.tenures[n].reading.inside > 0 }, (*world).stopReading},
	{"trust of readers ends", false, func(w *world, n int) bool { return w.faults[lapse] > 0 && w.isShared(n) },
		func(w *world, n int) {
			w.faults[lapse]--
			w.lose(id(n+1), lapsed)
			w.tenures[n].reading.renewal = true
		}},
	{"renewal of readers fails", false, func(w *world, n int) bool { return w.isShared(n) && !w.redis.reads(id(n+1)) },
		func(w *world, n int) { w.renew(id(n + 1)) }},

	{"downgrade runs", true, func(w *world, n int) bool { return w.tenures[n].reading.downgrade == sent },
		func(w *world, n int) {
			r := &w.tenures[n].reading
			r.answer, r.others = w.downgrade(id(n + 1))
			r.downgrade = answered
		}},
	{"downgrade runs, answer lost", false, func(w *world, n int) bool {
		return w.faults[lost] > 0 && w.tenures[n].reading.downgrade == sent
	}, func(w *world, n int) { w.faults[lost]--; w.downgrade(id(n + 1)) }},
	{"downgrade strays", false, func(w *world, n int) bool {
		r := &w.tenures[n].reading
		return w.faults[stray] > 0 && r.downgrade == sent && !r.stray
	}, func(w *world, n int) { w.faults[stray]--; w.tenures[n].reading.stray = true }},
	{"downgrade is answered", true, func(w *world, n int) bool { return w.tenures[n].reading.downgrade == answered },
		(*world).downgraded},
	{"downgrade is given up", false, func(w *world, n int) bool {
		return w.faults[cancel] > 0 && w.tenures[n].reading.downgrade != noCommand
	}, (*world).giveUpDowngrade},
}

// leftSteps are of tenure n, whoever's it is.
var leftSteps = []step{
	{"stray downgrade arrives", true, func(w *world, n int) bool { return w.tenures[n].reading.stray },
		func(w *world, n int) { w.tenures[n].reading.stray = false; w.downgrade(id(n + 1)) }},
	{"stray downgrade vanishes", true, func(w *world, n int) bool { return w.tenures[n].reading.stray },
		func(w *world, n int) { w.tenures[n].reading.stray = false }},
	{"late renewal arrives", true, func(w *world, n int) bool { return w.tenures[n].reading.renewal },
		func(w *world, n int) { w.tenures[n].reading.renewal = false; w.lateRenewal(id(n + 1)) }},
	{"late renewal vanishes", true, func(w *world, n int) bool { return w.tenures[n].reading.renewal },
		func(w *world, n int) { w.tenures[n].reading.renewal = false }},
	{"reader's lease expires", false, (*world).canExpireReader, (*world).expireReader},
	{"readers' key expires", false, func(w *world, n int) bool {
		s := &w.redis.shares
		return w.canExpireReader(n) && w.tenures[n].phase == lapsed && s.readers&s.leased == 1<<(n+1)
	}, func(w *world, n int) { w.redis.shares.readers = 0; w.expireReader(n); w.forgiven() }},
}

func (w *world) isShared(n int) bool {
	return w.tenures[n].reading.shared && w.tenures[n].phase == held
}

// giveUpDowngrade is a context that ends before the answer is known. What was sent may run.
func (w *world) giveUpDowngrade(n int) {
	w.faults[cancel]--
	r := &w.tenures[n].reading
	r.stray = r.stray || r.downgrade == sent
	r.downgrade, r.answer, r.others = noCommand, false, false
}

// canExpireReader is canExpire for a reader.
func (w *world) canExpireReader(n int) bool {
	t := id(n + 1)
	if !w.redis.reads(t) || !w.redis.shares.leased.has(t) {
		return false
	}
	x := w.tenure(t)
	return x.phase == lapsed || w.owned(t).dead || x.phase != held && w.faults[expire] > 0
}

func (w *world) expireReader(n int) {
	t := id(n + 1)
	if w.tenure(t).phase != lapsed && !w.owned(t).dead {
		w.faults[expire]--
	}
	w.redis.shares.leased.remove(t)
	w.doom(t)
	w.everybodyAsks()
}

// pollIsDue reports whether others wait that have not asked for as long as they do.
func (w *world) pollIsDue() bool {
	for n := range w.tenures {
		if w.isShared(n) && w.tenures[n].reading.unasked >= w.alone {
			return true
		}
	}
	return false
}

// allAnswered reports whether every waiter has been answered.
func (w *world) allAnswered() bool {
	done := true
	for c := range w.processes {
		w.eachWaiting(c, func(t id) { done = done && w.tenure(t).command == noCommand })
	}
	return done
}

// pollNow is the regular question of all who wait.
func (w *world) pollNow(int) {
	for n := range w.tenures {
		w.tenures[n].reading.unasked = 0
	}
	for c := range w.processes {
		if w.clients[c].dead {
			continue
		}
		w.eachWaiting(c, func(t id) {
			w.send(t)
			a := w.run(t)
			w.tenure(t).command, w.tenure(t).answer = answered, a
		})
	}
}
