package model

// config is a corner of the protocol that is searched to its end.
type config struct {
	name      string
	processes int
	calls     [maxClients]int8 // of Lock, by each client

	block  int8 // further tokens of a grant
	budget int8 // hand-offs in the process once it is known that others wait
	alone  int8 // hand-offs in the process while that is not known; stands for the timer of unprompted offers

	readWrite  bool             // it is a read-write lock
	reads      [maxClients]int8 // of the calls, how many read, by each client: they come besides
	downgrades [maxClients]int8
	batch      int8 // readers that one script grants
	lazy       bool // an inbox is opened only for somebody who waits
	rolls      bool // after a confirmation a process calls the roll

	polls   [maxClients]bool // whose waiters never queue
	lingers [maxClients]bool // who keeps the lock after Unlock, for a while
	tries   [maxClients]int8 // calls of TryLock, by each client: they come besides
	closes  [maxClients]bool // who may shut down
	allowed faults
	links   [maxClients]link // at the start
	bugs    bugs
}

// bugs are protocols that somebody could believe in. Each leads to a violation, which shows what the search
// can see.
type bugs struct {
	noGrantLoop      bool // who finds the lock free while somebody is queued just queues
	cancelOvertakes  bool // a release does not wait for the answers to the commands of its id
	noConfirmRecheck bool // a confirmed subscription is no reason to ask again
	noPendingRecheck bool // ... unless a command is unanswered: that will do
	publishCount     bool // the count that PUBLISH returns tells who lives
	arrivalTrust     bool // trust counts from when the grant was read
	strayIsIgnored   bool // an id is over with its first release, or with its loss, although a copy may arrive later

	sameID            bool // an offer keeps the owner id
	holdWhileOffered  bool // hand-offs go on while the offer is unanswered
	goneIsOwner       bool // an offer that finds neither id counts as kept
	turnDropped       bool // who is cancelled just when the turn came does not pass it on
	lossIsPassedOn    bool // the next in line holds what was lost
	onlyFreshReleased bool // cancelling an unanswered offer releases only the fresh id
	heirDoesNotAsk    bool // who inherits a wait waits for the answer to the one before
	offerUnsettled    bool // an id is offered although an acquire of it is unanswered
	noTimer           bool // there are no unprompted offers
	noWant            bool // queuing behind an owner that hands on inside is not said to it
	behindBack        bool // an offer counts who waits before it queues itself
	notReserved       bool // the block is not written to the counter
	forcedIsForgotten bool // a waiter does not remember that what it was granted has been taken away
	forcedNoToken     bool // what was taken away is named by the id alone
	grantTwiceIgnored bool // a holder ignores a grant even if its token is another one
	undated           bool // a grant is believed although an answer since then says queued

	pollOvertakes bool // who polls takes a lock that is free although somebody is queued
	lostIsBusy    bool // who polls takes an attempt without an answer for one in vain

	strayIsCalled bool // also who may be queued by a copy that arrives later
	staleLook     bool // a part of the roll that was read before a confirmation counts after it
	lookStays     bool // what a part said counts also when an acquire was sent since

	readBugs
	lingerBugs
}

// patience is how many hand-offs there are until an offer is due although nobody is known to wait.
func (c *config) patience() int8 {
	if c.bugs.noTimer {
		return 100
	}
	return c.alone
}

// start is the state before anything has happened.
func (c *config) start() state {
	s := state{faults: c.allowed}
	for n := range s.clients {
		p := &s.clients[n]
		if n >= c.processes {
			p.dead = true
			continue
		}
		p.calls, p.tries, p.link = c.calls[n], c.tries[n], c.links[n]
		p.sharing.calls, p.sharing.downgrades = c.reads[n], c.downgrades[n]
		if int(p.calls+p.tries+p.sharing.calls)*c.processes > maxTenures {
			panic("more calls than there is room for")
		}
	}
	return s
}
