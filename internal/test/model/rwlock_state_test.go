package model

import "iter"

// What a read-write lock adds to the state. Its write half is the lock of the other files.

// shares is what the scripts of a read-write lock read and write besides. The token is that of the last
// writer, and stays when the lock is free.
type shares struct {
	readers set // owner ids that read: the fields of the hash
	leased  set // readers whose lease is not over: their companions exist
	short   id  // writer that a message granted the lock, until its first renewal
}

// set is a set of ids.
type set uint16

func (s set) has(t id) bool { return s>>t&1 == 1 }
func (s *set) add(t id)     { *s |= 1 << t }
func (s *set) remove(t id)  { *s &^= 1 << t }

func (s set) all() iter.Seq[id] {
	return func(yield func(id) bool) {
		for t := id(1); t <= maxTenures; t++ {
			if s.has(t) && !yield(t) {
				return
			}
		}
	}
}

func (r *redis) reads(t id) bool { return r.shares.readers.has(t) }
func (r *redis) owns(t id) bool  { return r.owner == t || r.reads(t) }
func (r *redis) owned() bool     { return r.owner != nobody || r.shares.readers != 0 }

// free reports whether no lease of an owner goes on.
func (r *redis) free() bool {
	return r.owner == nobody && r.shares.readers&r.shares.leased == 0
}

// owners are the writer, or the readers.
func (r *redis) owners() iter.Seq[id] {
	s := r.shares.readers
	if r.owner != nobody {
		s.add(r.owner)
	}
	return s.all()
}

// confirmed is the first renewal of what a message granted.
func (r *redis) confirmed(t id) {
	if r.shares.short == t {
		r.shares.short = nobody
	}
}

// sharing is what the goroutines of a process share who read.
type sharing struct {
	side
	holder     id   // the tenure that further ones join
	downgrades int8 // that are still to come
}

// reading is what a tenure has that reads, or may.
type reading struct {
	reader bool // its entry in the queue demands so
	shared bool // its goroutines hold together
	weak   bool // its one goroutine does not write any more: it has asked for the downgrade

	audible   bool // its process would have heard all the while that others wait
	open      bool // others may join
	contended bool // it is known that others wait
	inside    int8 // goroutines that hold
	handed    int8 // that have joined since

	downgrade command // and its answer
	answer    bool    // it reads
	others    bool    // others wait
	stray     bool    // a copy of the downgrade may run at any time
	renewal   bool    // a renewal that was sent while it was trusted may run at any time

	// Not known to the process.
	since   int8 // when it was granted to read
	pruned  bool // it read, and its lease was over
	doomed  bool // queued, and its process has let a lease end since anybody looked
	joins   int8 // by those who could not know that somebody waits, or did
	unasked int8 // the same, since the waiters asked last
}

// leftBehind is what stays of a process that has ended.
func (x reading) leftBehind() reading {
	return reading{
		reader: x.reader, since: x.since, pruned: x.pruned, doomed: x.doomed,
		stray: x.stray || x.downgrade == sent, renewal: x.renewal || x.shared && x.inside > 0,
	}
}

// tidy makes states equal that differ in nothing that matters any more. owns: in Redis.
func (x *tenure) tidy(reads bool) {
	r := &x.reading
	if x.phase == unused || x.phase == waiting || x.phase == held || x.phase == offered {
		return
	}
	*r = reading{reader: r.reader, since: r.since, pruned: r.pruned, doomed: r.doomed, stray: r.stray, renewal: r.renewal}
	if !reads {
		r.since = 0
	}
	if !r.renewal && !reads {
		r.pruned = false
	}
}

// together reports whether both may hold at a time.
func (x *tenure) together(y *tenure) bool { return x.gentle() && y.gentle() }

// gentle reports whether its goroutines do not write.
func (x *tenure) gentle() bool { return x.reading.shared || x.reading.weak }

// mayRead reports whether a copy of a downgrade may run, or has, whose answer its process does not know.
func (w *world) mayRead(t id) bool { return w.tenure(t).reading.weak && !w.bugs.weakIsPassedOn }

// readBugs are protocols of a read-write lock that somebody could believe in.
type readBugs struct {
	releaseDeletes   bool // release.lua, give_back: whoever leaves deletes the lock, with other readers in it
	pruneIsBlind     bool // holders.lua, first_reader_end: the companions are not looked at
	pruneNobody      bool // holders.lua: readers are over with the lock's key only
	downgradeOnce    bool // downgrade.lua: a copy finds no writer, and says so
	downgradeRevives bool // downgrade.lua: a copy makes a reader of what is over
	downgradeAlone   bool // downgrade.lua: it does not serve
	servePast        bool // grant.lua, serve: readers are granted that stand behind a writer
	joinPast         bool // take.lua: a reader joins others in Redis though somebody is queued
	cancelIsSilent   bool // grant.lua, give_back: whoever owned nothing serves only if the lock is free
	deadHeadStays    bool // grant.lua, serve: a dead writer at the head holds up the readers behind it
	runEnds          bool // grant.lua, serve: the first who is left does not hear that it must ask
	shortIsIgnored   bool // holders.lua, holder_left: short is not looked at
	shortStays       bool // grant.lua: a writer's release leaves short
	renewalRevives   bool // renew.lua: it makes a reader of one that was pruned
	wantOnce         bool // acquire.lua: only who is new tells the readers that it waits
	firstToken       bool // state.lua, read_token: the tokens that are reserved do not count
	weakIsPassedOn   bool // grant, handOff: after a downgrade without an answer the next one writes
	joinAfterWant    bool // grant, admits: the budget is not looked at
	deafIsJoined     bool // grant, share: also a tenure is open that did not listen
}
