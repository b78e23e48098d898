package model

import "slices"

// How the queue of a semaphore is served.

// contend serves those who wait, and then who asks.
func (s *trade[I]) contend(id I, d demand, m mode) permitAnswer {
	s.open = true
	s.reclaim()
	if h := s.serve(&id, !s.plain && m == again && !s.firstIsNotLookedAt); h != nil {
		return s.yours(h)
	}
	n := d.n
	if d.drains {
		n = max(1, min(s.free, 1000))
	}
	leave := func() {
		if m != atFirst {
			s.drop(id)
		}
	}
	if s.set && s.free >= n && (d.drains || s.door == everybody || s.door == whoPasses && d.passes || s.queueIsIgnored) {
		leave()
		s.free -= n
		return s.yours(s.own(id, n, false, d.turns))
	}
	never := s.set && n > s.capacity()
	switch {
	case !s.set && !d.early:
		leave()
		return permitAnswer{kind: unset}
	case never && !d.patient && !d.drains:
		leave()
		return permitAnswer{kind: tooMany}
	case m == tryingIt:
		return permitAnswer{kind: busy}
	}
	placed := s.join(id, d, m, never)
	return permitAnswer{kind: queued, token: s.last, others: s.others, placed: placed}
}

// reclaim takes back what has no lease any more. Whoever never renewed what it was granted by a message has
// its entries dropped.
func (s *trade[I]) reclaim() {
	if s.reclaimed || s.plain {
		return
	}
	s.reclaimed = true
	for i := range s.held {
		h := &s.held[i]
		if h.n == 0 || !h.over {
			continue
		}
		if s.set {
			s.free += h.n
		}
		h.n = 0
		s.unanswered = s.unanswered || h.short
		for j := 0; j < s.length && h.short && !s.mine(h.id); j++ {
			if x := &s.list[j]; s.mates(x.id, h.id) {
				s.drop(x.id)
			}
		}
	}
}

// serve grants to those who wait, in their order. looks: although nothing is free, as one before the first
// that has to wait may ask for more than there are. It returns what it granted to self, which needs no
// message.
func (s *trade[I]) serve(self *I, looks bool) (mine *holding[I]) {
	if !s.set || s.free <= s.stuck && !looks {
		return nil
	}
	s.door = noOne
	heldUp := false
	for at := 0; ; at++ {
		for s.read < s.length && at >= s.read {
			s.read, s.chunk = min(s.length, s.read+s.chunk), 2*s.chunk
		}
		if at == len(s.list) {
			if s.door = everybody; heldUp {
				s.door = whoPasses
			}
			break
		}
		if s.free < 1 && (heldUp || !looks) {
			break
		}
		x := &s.list[at]
		if x.gone {
			continue
		}
		never := x.n > s.capacity()
		if heldUp && (!x.patient || !never) && !x.passes && !s.headIsPassed {
			break
		}
		own := self != nil && x.id == *self
		switch {
		case !own && !s.alive(x.id) && !s.deadAreGranted || s.holding(x.id) != nil && !s.takesTwice:
			x.gone = true
		case x.n <= s.free:
			h := s.own(x.id, x.n, !own, x.turns)
			if own {
				mine = h
			} else {
				s.tell(dispatch[I]{kind: granted, id: x.id, token: h.token, block: x.turns})
			}
			x.gone = true
			s.free -= x.n
		case x.patient && never:
		case !never || s.impossibleHoldsUp:
			heldUp = true
		default:
			x.gone = true
			if !s.impossibleIsNotTold {
				s.ask(x.id)
			}
		}
	}
	s.stuck = max(s.free, 0)
	if mine != nil { // what was granted after it may have moved it
		mine = s.holding(*self)
	}
	return mine
}

func (s *trade[I]) tell(d dispatch[I]) { s.sent = append(s.sent, d) }

// ask has a client ask for all that it waits for.
func (s *trade[I]) ask(id I) {
	if !slices.ContainsFunc(s.sent, func(d dispatch[I]) bool { return d.kind == recheck && s.mates(d.id, id) }) {
		s.tell(dispatch[I]{kind: recheck, id: id})
	}
}

// join queues an id unless it is queued. It reports whether it did.
func (s *trade[I]) join(id I, d demand, m mode, aside bool) bool {
	if !s.looked {
		s.looked = true
		s.lookAround()
	}
	if m != atFirst && slices.ContainsFunc(s.list, func(x slot[I]) bool { return !x.gone && x.id == id }) {
		if s.others && !s.said {
			s.said = true
			s.tell(dispatch[I]{kind: want, id: id})
		}
		return false
	}
	s.next()
	s.list = append(s.list, slot[I]{place: place[I]{id, d}})
	s.stuck = min(s.stuck, max(s.free, 0))
	switch {
	case aside:
	case s.door == everybody:
		s.door = whoPasses
	case !d.passes:
		s.door = noOne
	}
	return true
}

// lookAround finds out whether other clients wait, as both ends of the queue say. The last one is told.
func (s *trade[I]) lookAround() {
	if s.length == 0 || s.read == s.length && s.list[s.length-1].gone {
		return
	}
	if last := s.list[s.length-1]; !s.mine(last.id) {
		s.others = true
		if (s.length == 1 || last.turns > 0) && !s.othersAreNotTold {
			s.tell(dispatch[I]{kind: want, id: last.id})
		}
		return
	}
	for _, x := range s.list[:min(s.length, near)] {
		s.others = s.others || !s.mine(x.id)
	}
}

// near is how many of the next in the queue are looked at.
const near = 8

// othersThan reports whether one of the next in the queue is not of the client that is granted something.
func (s *trade[I]) othersThan(id I) bool {
	looked := 0
	for i, x := range s.list {
		if x.gone || i >= s.read && i < s.length {
			continue
		}
		if !s.mates(x.id, id) {
			return true
		}
		if looked++; looked == near {
			break
		}
	}
	return false
}
