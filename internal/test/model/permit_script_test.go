package model

import "slices"

// The scripts of a semaphore. Ids are of any kind: small numbers in the search, owner ids in a trace.

// pool is what the scripts keep.
type pool[I comparable] struct {
	set   bool // somebody has said how many permits there are
	free  int
	held  []holding[I] // of plain permits: the records of commands
	queue []place[I]
	last  int64 // the last number that was given out, or reserved
}

// holding is what an id holds.
type holding[I comparable] struct {
	id       I
	n        int
	token    int64
	reserved int64 // tokens behind that one
	short    bool  // granted by a message, and not renewed since
	over     bool  // its lease is over, and nobody has taken it back yet
}

// place is an entry of the queue. A late copy may queue an id again.
type place[I comparable] struct {
	id I
	demand
}

// demand is what a request asks for.
type demand struct {
	n       int
	turns   int64 // tokens to reserve
	drains  bool  // all that are free
	passes  bool  // a first that does not fit
	patient bool  // waits aside, although there are fewer
	early   bool  // waits until somebody says how many there are
}

// dispatch is a message that a script sends.
type dispatch[I comparable] struct {
	kind   kind
	id     I
	token  int64
	block  int64
	others bool
}

// mode is how an id asks.
type mode uint8

const (
	again    mode = iota // it may be queued
	atFirst              // it cannot be, but for a late copy
	tryingIt             // it does not wait
)

// trade is a script that runs. It changes the pool, and says whom it has told what.
type trade[I comparable] struct {
	*pool[I]
	*permitBugs

	plain bool // nobody knows how many are out, and nothing has a lease
	mine  func(I) bool
	mates func(a, b I) bool // of one client
	alive func(I) bool
	sent  []dispatch[I]

	list   []slot[I] // the queue as it was, and who joins
	length int       // as it was
	read   int       // so much of it was read
	chunk  int       // is read next

	open, reclaimed, looked, others, said bool

	unanswered bool // a client did not react: the script calls the others that wait

	stuck int // with so many free permits nothing can be granted
	door  door
}

// slot is a place of the queue in a script.
type slot[I comparable] struct {
	place[I]

	gone bool
}

// door is who may take free permits although somebody waits.
type door uint8

const (
	everybody door = iota
	whoPasses
	noOne
)

// begin reads what is there. gives is how many requests give back.
func (s *trade[I]) begin(gives int) {
	for _, p := range s.queue {
		s.list = append(s.list, slot[I]{place: p})
	}
	s.length, s.open, s.chunk = len(s.list), len(s.list) > 0, max(2, gives+1)
}

// commit writes the queue.
func (s *trade[I]) commit() {
	s.queue = nil
	for _, x := range s.list {
		if !x.gone {
			s.queue = append(s.queue, x.place)
		}
	}
	for i := range s.sent {
		if d := &s.sent[i]; d.kind == granted {
			d.others = d.block > 0 && s.othersThan(d.id)
		}
	}
	s.held = slices.DeleteFunc(s.held, func(h holding[I]) bool { return h.n == 0 })
}

func (s *trade[I]) holding(id I) *holding[I] {
	for i := range s.held {
		if h := &s.held[i]; h.id == id && h.n > 0 {
			return h
		}
	}
	return nil
}

// capacity is how many there are, out or free.
func (s *trade[I]) capacity() int {
	if s.plain {
		return 1 << 30
	}
	return s.pool.capacity()
}

func (p *pool[I]) capacity() int {
	n := p.free
	for _, h := range p.held {
		n += h.n
	}
	return n
}

func (s *trade[I]) next() int64 {
	s.last++
	return s.last
}

func (s *trade[I]) own(id I, n int, short bool, turns int64) *holding[I] {
	token := int64(1) // of plain permits
	if !s.plain {
		token = s.next()
	}
	if s.plain {
		turns = 0 // there are no tokens to reserve
	}
	if !s.tokensNotReserved {
		s.last += turns
	}
	if h := s.holding(id); h != nil { // only where takesTwice
		h.n, h.token = h.n+n, token
		return h
	}
	s.held = append(s.held, holding[I]{id: id, n: n, token: token, reserved: turns, short: short})
	return &s.held[len(s.held)-1]
}

// disown leaves an id so many permits, and reports whether it had any.
func (s *trade[I]) disown(id I, keep int) bool {
	h := s.holding(id)
	if h == nil {
		return false
	}
	if keep < h.n {
		if s.set {
			s.free += h.n - keep
		}
		h.n = keep
	}
	return true
}

// drop removes an id from the queue.
func (s *trade[I]) drop(id I) {
	for i := range s.list {
		s.list[i].gone = s.list[i].gone || s.list[i].id == id
	}
}

// take is one request.
func (s *trade[I]) take(id I, d demand, m mode) (a permitAnswer) {
	h := s.holding(id)
	switch {
	case h != nil && !s.takesTwice && (!h.over || s.plain):
		h.short = false
		return s.yours(h)
	case (h == nil || s.takesTwice) && !s.open && !d.drains && !d.passes && !d.patient && !d.early && s.set && s.free >= d.n:
		s.free -= d.n
		return s.yours(s.own(id, d.n, false, d.turns))
	}
	return s.contend(id, d, m)
}

func (s *trade[I]) yours(h *holding[I]) permitAnswer {
	return permitAnswer{kind: owner, token: h.token, block: h.reserved, n: h.n}
}

// give gives back, and serves those who wait, if they were seen.
func (s *trade[I]) give(id I, keep int) bool {
	held := s.disown(id, keep)
	if s.open && !s.releaseServesNobody {
		s.serve(nil, false)
	}
	return held
}

// put adds plain permits, once for each id.
func (s *trade[I]) put(id I, n int) bool {
	switch {
	case s.holding(id) != nil:
		return true
	case !s.set:
		return false
	}
	s.own(id, n, false, 0)
	s.free += n
	if s.open {
		s.serve(nil, false)
	}
	return true
}

// leave ends ids.
func (s *trade[I]) leave(ids ...I) {
	for _, id := range ids {
		s.disown(id, 0)
	}
	if s.open {
		s.serve(nil, false)
	}
}

// change sets how many permits there are, or, of plain ones, are free.
func (s *trade[I]) change(goal int) {
	s.open = true
	s.reclaim()
	total := s.free
	if !s.plain {
		total = s.capacity()
	}
	s.free += goal - total
	s.set = true
	s.serve(nil, false)
}

// destroy deletes it all. Holders are told up to which token, and waiters to ask.
func (s *trade[I]) destroy() {
	for _, h := range s.held {
		if h.n > 0 && !s.plain {
			s.tell(dispatch[I]{kind: forced, id: h.id, token: h.token})
		}
	}
	for _, x := range s.list {
		if !x.gone {
			s.ask(x.id)
		}
	}
	if s.plain { // the records stay
		*s.pool = pool[I]{last: s.last, held: s.held}
	} else {
		*s.pool = pool[I]{last: s.last}
	}
	s.list = nil
}
