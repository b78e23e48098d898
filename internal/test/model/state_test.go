package model

// The bounds of the arrays; a configuration that needs more panics.
const (
	maxClients = 3
	maxTenures = 10
	maxQueue   = 6
	maxInbox   = 7
)

// id names a tenure. It is never used again. The ids of a client are as far apart as there are clients.
type id int8

const nobody id = 0

// state is everything there is. It is comparable, and equal states are one.
type state struct {
	redis   redis
	clients [maxClients]client
	tenures [maxTenures]tenure // of id n at n-1
	faults  faults             // that may still happen
	seen    history
}

// redis is what the scripts read and write, in one step each.
type redis struct {
	owner   id
	token   int8
	block   bool // further tokens are the owner's, too: it hands on inside its process
	counter int8 // the last token that was given or reserved
	queue   [maxQueue]id
	queued  int8
	shares  shares
}

// client is a process. Its goroutines are alike, so that only their number counts, and the order of the line
// does not.
type client struct {
	dead    bool
	link    link
	inbox   [maxInbox]message
	unread  int8
	made    int8 // tenures
	side         // of those who exclude each other
	tries   int8 // calls of TryLock that are still to come
	closing bool

	sharing sharing // those who read
}

// side is the goroutines of a process that hold on the same condition.
type side struct {
	calls int8 // of Lock that are still to come
	line  int8 // goroutines that wait for the turn
	turn  turn // of the one who has it
	kept  id   // what goes with the turn: the tenure that waits, or holds
}

type turn uint8

const (
	noTurn turn = iota
	given       // the goroutine has not looked yet at what was left to it
	waits
	holds
	parks // has unlocked, and is about to keep the lock
	tries // offers what was parked, and does not wait
)

// link is the subscription of a client's inbox.
type link uint8

const (
	up       link = iota
	down          // the server knows that it is gone
	halfOpen      // the server counts it, and nobody reads
	replica       // messages arrive, and the primary counts nobody
)

type message struct {
	kind    kind
	id      id
	token   int8
	block   bool
	others  bool // somebody else is queued
	phantom bool // nothing was written for it
	moment  int8 // when it was granted, as the counter showed
	asker   id   // who tried, and is to be told when it may ask again
}

type kind uint8

const (
	_        kind = iota
	granted       // the id owns the lock
	want          // somebody queued behind the id, or tried
	forced        // the id's ownership was taken away
	confirm       // not published: the subscription stands
	recheck       // the id is the first who waits, and is to ask
	tryAgain      // the id may ask once more
)

// tenure is one owner id: what its process knows of it, and its commands that are on their way.
type tenure struct {
	phase phase

	// The command that is unanswered, and what it asks for.
	command command
	offers  id // it is an offer of this id; nobody: an acquire
	answer  answer

	old     id   // that is offered for this one, as long as no answer to that is known
	again   bool // ask once more after the answer
	aborted bool // the one who asked has gone, and may not see the answer

	// Copies of commands whose connection broke: they run at some time, or never do.
	stray      bool
	strayOffer id
	loose      bool // the process has to reckon with one: an answer was lost, or said that a holder is queued

	// The grant, and what was made of it.
	token int8 // the first of its tokens
	block bool
	used  int8 // holds that there were
	left  int8 // hand-offs in the process until an offer is due
	inUse bool // a goroutine holds now

	asked    int8 // the counter when it was said last to be queued: grants from before are over
	told     int8 // up to this token it is known that its ownership was taken away
	released bool // a release was answered, and is repeated in case that a stray copy arrives after it

	// Not known to the process.
	taken  int8 // its ownership up to this token was taken away while it was trusted
	placed bool // queued, and its inbox has been counted ever since

	look     look
	unqueued bool // the command does not look whether it is queued

	reading reading
	linger  linger
}

type phase uint8

const (
	unused  phase = iota
	waiting       // for the lock, or for the answer whether it has it
	held          // by a goroutine, or between two of them
	offered       // given up for another id, and not known yet to be over
	ending        // its release is on its way
	lapsed        // no longer trusted: its lease runs out
	over
)

type command uint8

const (
	noCommand command = iota
	sent
	answered
)

// answer is what a script says.
type answer struct {
	kind   reply
	token  int8
	block  bool
	others bool
	moment int8
}

type reply uint8

const (
	_ reply = iota
	owner
	queued
	gone
	busy
	asked // busy, and its owner was sent a Want
)

// faults counts what may still go wrong.
type faults [kinds]int8

const (
	lost    = iota // the answer to a command is lost, and it is sent again
	stray          // a command's connection breaks, and it is sent again; the first copy may arrive at any time
	kill           // a subscription breaks, and what was under way is lost
	half           // the same, and the server does not notice
	crash          // a process ends
	cancel         // a goroutine's context ends while it waits
	lapse          // a holder's trust ends
	expire         // a lease ends that nobody trusts: of a grant that was not read, of an id that was offered
	force          // ForceUnlock
	restart        // Redis comes back empty
	mute           // a want is lost, or the answer to it
	kinds
)

// history is what the properties have to remember.
type history struct {
	last   int8 // the greatest token that was a hold
	hunger int8 // hand-offs in the owner's process since another one is queued
	wrote  int8 // the greatest token of a writer
}

// world is a state in which a step is taken.
type world struct {
	state
	*config
	broken []violation
	mute   bool // the script that runs may not publish
}

// clientOf returns whose tenure it is.
func (c *config) clientOf(t id) int { return (int(t) - 1) % c.processes }

func (w *world) tenure(t id) *tenure { return &w.tenures[t-1] }

func (w *world) owned(t id) *client { return &w.clients[w.clientOf(t)] }

// each calls f for every tenure of a client.
func (w *world) each(c int, f func(id, *tenure)) {
	for n := range int(w.clients[c].made) {
		t := id(n*w.processes + c + 1)
		f(t, w.tenure(t))
	}
}

// fresh returns a new tenure of a client.
func (w *world) fresh(c int) id {
	p := &w.clients[c]
	t := id(int(p.made)*w.processes + c + 1)
	p.made++
	*w.tenure(t) = tenure{phase: waiting, left: w.patience()}
	return t
}

// tidy makes states equal that differ in nothing that matters any more.
//
//go:norace
func (w *world) tidy() {
	for n := range w.tenures {
		x := &w.tenures[n]
		x.tidy(w.redis.reads(id(n + 1)))
		x.tidyLinger()
		if x.phase != waiting {
			x.look = noLook
		}
		if x.asked > 0 && (x.phase != waiting || !w.grantsUntil(id(n+1), x.asked)) {
			x.asked = 0
		}
		if x.phase == unused || w.owned(id(n+1)).kept == id(n+1) {
			continue
		}
		if x.phase == over || x.phase == ending || x.phase == offered || x.phase == lapsed {
			x.again, x.placed, x.asked, x.told, x.left, x.taken, x.inUse = false, false, 0, 0, 0, 0, false
			if x.phase != offered { // what was offered is told from what it was granted
				x.token, x.block, x.used = 0, false, 0
			}
		}
		if x.command == noCommand {
			x.aborted = false
		}
		if x.phase == over {
			x.old, x.loose = nobody, false
		}
	}
	if w.redis.queued == 0 {
		w.seen.hunger = 0
	}
}

// grantsUntil reports whether an unread message grants t at this moment or before it.
func (w *world) grantsUntil(t id, moment int8) bool {
	p := w.owned(t)
	for _, m := range p.inbox[:p.unread] {
		if m.kind == granted && m.id == t && m.moment <= moment {
			return true
		}
	}
	return false
}
