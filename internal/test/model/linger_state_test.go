package model

// What a lock that lingers adds to the state. After Unlock the tenure may be parked: its process keeps it,
// and nobody holds. Nobody has the turn then, and what goes with it is kept.

// linger is what a tenure has that may be parked, or is that of a TryLock.
type linger struct {
	contended bool // it is known that others want the lock: Unlock releases

	tried  bool // it is that of a TryLock
	stage  stage
	awaits id // its process is told once the release of that was answered

	// Not known to the process.
	owed   id   // the tenure that was parked when its process heard of the attempt
	doomed bool // its release is due, whoever holds by then: a bug
	told   bool // the answer to who tried has come: a bug needs it
}

// stage is how far a TryLock has come.
type stage uint8

const (
	noStage stage = iota
	first         // it asks, and has a lock that lingers released
	pauses        // until it hears that this is done, or cannot be
	second        // it asks once more
	leaves        // it has unlocked, and is about to keep the lock
)

// leftBehind is what stays of a process that has ended.
func (x linger) leftBehind() linger { return linger{tried: x.tried} }

// tidyLinger makes states equal that differ in nothing that matters any more.
func (x *tenure) tidyLinger() {
	l := &x.linger
	switch x.phase {
	case waiting:
	case held:
		l.awaits, l.owed = nobody, nobody
		if l.stage != leaves {
			l.stage = noStage
		}
	case unused, offered, lapsed, ending, over:
		*l = l.leftBehind()
	}
}

// parked reports whether a process keeps the lock, and nobody holds it.
func (w *world) parked(c int) bool {
	p := &w.clients[c]
	return p.turn == noTurn && p.kept != nobody && w.tenure(p.kept).phase == held
}

// lingersOn reports whether a tenure is parked, as it may be for a while.
func (w *world) lingersOn(t id) bool {
	c := w.clientOf(t)
	return w.clients[c].kept == t && w.parked(c) && !w.clients[c].closing
}

// marked reports whether Redis knows that the owner may linger. It does not know whether it does.
func (w *world) marked() bool {
	r := &w.redis
	return r.owner != nobody && r.block && w.lingers[w.clientOf(r.owner)]
}

// lingerBugs are ways to linger that somebody could believe in.
type lingerBugs struct {
	turnWhileReleased bool // a turn is begun from what is being released
	wantEndsATurn     bool // Want finds the tenure parked, and releases it later, without looking again
	wantEndsNothing   bool // Want is noted, also while the tenure is parked
	wantForgotten     bool // Want while it is held is not noted
	earlyWant         bool // nor while the grant is not known yet
	othersForgotten   bool // a grant that says that others wait does not count
	looksOnce         bool // Unlock does not look again once the tenure is parked
	lossLeavesIt      bool // a loss ends holds, and what is parked goes on
	noLingerTimer     bool // what is parked is released when somebody asks, and not before
	tokenAgain        bool // a turn from what was parked has the token of the turn before
	uncounted         bool // turns from what was parked do not bring the next offer nearer
	unmarked          bool // a grant without anybody in the queue reserves no tokens: Redis sends no Want
	closeForgets      bool // Shutdown ends holds and waits alone
	answersEarly      bool // who tried is told before the release is answered
	unbounded         bool // who tried waits until it is told
	queuesAtLast      bool // the second attempt of a TryLock queues
	parksBeside       bool // what a TryLock has left is parked although somebody has the turn
	offerQueues       bool // the offer of a TryLock queues
	heirTries         bool // who inherits the offer of a TryLock does not wait either
}
