package model

// The bounds of the arrays; a configuration that needs more panics.
const (
	maxRequests    = 6
	maxPlaces      = 8
	maxPermitInbox = 8
)

// permitState is everything there is of a semaphore and the processes that use it. It is comparable.
type permitState struct {
	set      bool
	free     int8
	last     int8
	held     [maxRequests]given8 // of id n at n-1
	queue    [maxPlaces]id
	queued   int8
	clients  [maxClients]permitClient
	requests [maxRequests]request // of id n at n-1
	faults   faults               // that may still happen
	changed  int8                 // changes of the capacity that there were
	seen     permitHistory
}

// given8 is what an id holds in Redis.
type given8 struct {
	n, token, reserved int8
	short, over        bool
}

// permitClient is a process.
type permitClient struct {
	dead     bool
	link     link
	inbox    [maxPermitInbox]message
	unread   int8
	called   int8 // requests that have begun
	made     int8 // of these, that were sent to Redis
	line     int8 // goroutines that wait for a single permit, and have sent nothing
	delegate id   // the request of the first in line
	due      bool // its oldest waiter is to ask
	polled   id   // it has, and is not answered yet
}

// request is one owner id: what its process knows of it, and its commands that are on their way.
type request struct {
	phase phase
	n     int8

	// The command that is unanswered.
	command command
	queued  bool // it was told that it is
	first   bool // it says that it was not sent before
	answer  packedAnswer
	again   bool // ask once more after the answer
	aborted bool // the one who asked has gone

	stray      bool // a copy of an acquire whose connection broke
	strayFirst bool
	loose      bool // the process has to reckon with one

	token int8
	block int8
	used  int8 // goroutines that have held it after the first
	left  int8 // how many more may

	asked    int8 // the number when it was said last to be queued
	told     int8 // up to this token it is known to be taken away
	released bool
	taken    int8 // it was taken away while it was trusted, and the process does not know
	placed   bool // queued, and its inbox has been counted ever since
}

// permitAnswer is what a script says to a take.
type permitAnswer struct {
	kind   reply
	token  int64
	block  int64
	n      int
	others bool
	placed bool // it was not queued before
}

type packedAnswer struct {
	kind         reply
	token, block int8
	others       bool
	placed       bool
}

// Further replies.
const (
	unset   reply = 20 + iota // nobody has said how many permits there are
	tooMany                   // there are fewer permits
)

// permitHistory is what the properties have to remember.
type permitHistory struct {
	capacity int8 // as it was set
	most     int8 // permits that may be out: more than that, while not all have come back that were more
	last     int8 // the greatest token that was given out or reserved
	hunger   int8 // permits that a process passed on inside since another one is queued
}

// permitConfig is a corner of the protocol that is searched to its end.
type permitConfig struct {
	name      string
	processes int
	calls     [maxClients][]int8 // how many permits each request is for

	capacity int8
	changes  []int8
	passes   bool // whoever fits passes a first that does not
	patient  bool // a request for more than there are waits
	holds    int8 // how many goroutines may go on with permits that were granted to another one
	alone    int8 // how often at most while others wait
	allowed  faults
	bugs     permitBugs
}

// permitBugs are protocols that somebody could believe in.
type permitBugs struct {
	takesTwice          bool // a take does not look what its id holds
	firstIsNotLookedAt  bool // who asks again does not look at the first while nothing is free
	impossibleHoldsUp   bool // a first that asks for more than there are is one that does not fit
	impossibleIsNotTold bool // ... or is dropped, and nobody is told
	headIsPassed        bool // who fits is granted although the first does not
	queueIsIgnored      bool // who asks takes what is free
	deadAreGranted      bool // nobody looks who listens
	releaseServesNobody bool // what comes back is for who asks next
	tokensNotReserved   bool
	othersAreNotTold    bool // the last in the queue does not hear that another one queues

	cancelOvertakes  bool // a release does not wait for the answers to the commands of its id
	strayIsIgnored   bool
	noConfirmRecheck bool
	nobodyPolls      bool // when a lease ends, and when there are fewer permits
	forcedForgotten  bool
	grantLetsNoneIn  bool // whose delegate was granted permits, nobody competes
	turnDropped      bool // nor when it is cancelled
	yieldsNever      bool // also when others are known to wait
	refusedIsOver    bool // an id that is refused is over, although a copy may arrive later
	lossIsPassedOn   bool // who is next in line holds what was lost
}

type permitWorld struct {
	permitState
	*permitConfig

	broken []violation
}

func (c *permitConfig) clientOf(t id) int { return (int(t) - 1) % c.processes }

func (w *permitWorld) request(t id) *request    { return &w.requests[t-1] }
func (w *permitWorld) owned(t id) *permitClient { return &w.clients[w.clientOf(t)] }

// each calls f for every request of a client, the oldest first.
func (w *permitWorld) each(c int, f func(id, *request)) {
	for n := range int(w.clients[c].made) {
		t := id(n*w.processes + c + 1)
		f(t, w.request(t))
	}
}

// start is the state before anything has happened.
func (c *permitConfig) start() permitState {
	s := permitState{set: true, free: c.capacity, faults: c.allowed}
	s.seen.capacity, s.seen.most = c.capacity, c.capacity
	for n := range s.clients {
		s.clients[n].dead = n >= c.processes
		if len(c.calls[n])*c.processes > maxRequests {
			panic("more calls than there is room for")
		}
	}
	return s
}

func (w *permitWorld) demand(t id) demand {
	d := demand{n: int(w.request(t).n), passes: w.passes, patient: w.patient}
	if d.n == 1 && w.holds > 0 {
		d.turns = int64(w.holds)
	}
	return d
}

// pool unpacks what is in Redis.
func (w *permitWorld) pool() *pool[id] {
	p := &pool[id]{set: w.set, free: int(w.free), last: int64(w.last)}
	for i, h := range w.held {
		if h.n > 0 {
			p.held = append(p.held, holding[id]{id(i + 1), int(h.n), int64(h.token), int64(h.reserved), h.short, h.over})
		}
	}
	for _, t := range w.queue[:w.queued] {
		p.queue = append(p.queue, place[id]{t, w.demand(t)})
	}
	return p
}

func (w *permitWorld) pack(p *pool[id]) {
	w.set, w.free, w.last = p.set, int8(p.free), int8(p.last)
	w.held, w.queue = [maxRequests]given8{}, [maxPlaces]id{}
	for _, h := range p.held {
		w.held[h.id-1] = given8{int8(h.n), int8(h.token), int8(h.reserved), h.short, h.over}
	}
	w.queued = int8(len(p.queue))
	for i, q := range p.queue {
		w.queue[i] = q.id
	}
}

// tidy makes states equal that differ in nothing that matters any more.
//
//go:norace
func (w *permitWorld) tidy() {
	for n := range w.requests {
		x := &w.requests[n]
		if x.command == noCommand {
			x.aborted, x.first, x.again = false, false, false
		}
		if x.phase != waiting {
			x.placed, x.queued, x.asked = false, false, 0
		} else if x.asked > 0 && !w.grantsUntil(id(n+1), x.asked) {
			x.asked = 0
		}
		switch x.phase {
		case over, ending, lapsed:
			x.again, x.told, x.left, x.taken, x.token, x.block, x.used = false, 0, 0, 0, 0, 0, 0
			if x.phase == over {
				x.loose = false
			}
		}
	}
	if w.queued == 0 {
		w.seen.hunger = 0
	}
	for c := range w.processes {
		if w.clients[c].due && w.oldest(c) == nobody {
			w.clients[c].due, w.clients[c].polled = false, nobody
		}
	}
}

// oldest is the first of a client's requests that waits, or nobody.
func (w *permitWorld) oldest(c int) (first id) {
	w.each(c, func(t id, x *request) {
		if first == nobody && x.phase == waiting {
			first = t
		}
	})
	return first
}

// grantsUntil reports whether something unread grants t with this token or a smaller one.
func (w *permitWorld) grantsUntil(t id, token int8) bool {
	p := w.owned(t)
	for _, m := range p.inbox[:p.unread] {
		if m.kind == granted && m.id == t && m.token <= token {
			return true
		}
	}
	return false
}
