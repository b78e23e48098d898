package model

// The scripts of a read-write lock. They call those of the lock where they do the same.

// mode reports what the hash says: somebody writes, or reads.
func (r *redis) mode() (writes, reads bool) { return r.owner != nobody, r.shares.readers != 0 }

func (r *redis) fits(reads bool) bool {
	written, read := r.mode()
	return !written && (!read || reads)
}

// acquireHalf is rwlock/acquire.lua.
func (w *world) acquireHalf(t id) answer {
	r, reads := &w.redis, w.tenure(t).reading.reader
	if r.fits(reads) && (r.queued == 0 || w.bugs.joinPast && r.shares.readers != 0) {
		return w.ownNow(t)
	}
	switch {
	case r.owner == t:
		r.confirmed(t)
		return w.yours()
	case r.reads(t):
		return w.ownRead(t)
	}
	w.holderLeft(t)
	w.looked(t)
	w.serve(t, false)
	if r.owns(t) {
		return w.yoursHalf(t)
	}
	if r.fits(reads) && r.queued == 0 {
		return w.ownNow(t)
	}
	added := r.push(t)
	if _, read := r.mode(); r.place(t) == 0 && (read && (added || !w.bugs.wantOnce) || added && r.block) {
		w.tellOwners(want, 0)
	}
	return w.queuedNow()
}

// yoursHalf is the reply to an owner. That to a reader is dated.
func (w *world) yoursHalf(t id) answer {
	if !w.redis.reads(t) {
		return w.yours()
	}
	return answer{kind: owner, token: w.readToken(), others: w.redis.queued > 0, moment: w.tenure(t).reading.since}
}

func (w *world) ownNow(t id) answer {
	if w.tenure(t).reading.reader {
		return w.ownRead(t)
	}
	w.ownWrite(t, false, false)
	return w.yours()
}

// ownWrite is own_write of rwlock/state.lua. told: by a message.
func (w *world) ownWrite(t id, told, block bool) {
	r := &w.redis
	r.shares = shares{}
	w.forgiven()
	if told {
		r.shares.short = t
	}
	w.own(t, block)
}

// ownRead is own_read of rwlock/state.lua.
func (w *world) ownRead(t id) answer {
	r, x := &w.redis, w.tenure(t)
	if !r.reads(t) {
		w.overtaking(t)
	}
	if !r.reads(t) || !r.shares.leased.has(t) {
		r.counter++ // for the server's clock
		x.reading.since, x.reading.pruned = r.counter, false
		w.forgiven()
	}
	r.owner = nobody
	r.shares.readers.add(t)
	r.shares.leased.add(t)
	return w.yoursHalf(t)
}

// readToken is the token of readers: the last that the writer before them may have used.
func (w *world) readToken() int8 {
	r := &w.redis
	if r.token == 0 {
		r.counter++
		r.token, r.block = r.counter, false
	}
	if r.block && !w.bugs.firstToken {
		return r.token + w.block
	}
	return r.token
}

// holderLeft is that of rwlock/holders.lua: it ends the readers whose lease is over. asker's process is
// alive. Where many read, it looks at none before the time that the last look has told (rwlock/crowd.lua):
// until then it would find nothing, as here when no lease is over.
func (w *world) holderLeft(asker id) {
	r := &w.redis
	idle, gone := !r.owned(), r.shares.readers&^r.shares.leased
	if w.bugs.pruneIsBlind {
		gone = r.shares.readers
	}
	if w.bugs.pruneNobody && gone != r.shares.readers {
		gone = 0
	}
	for t := range gone.all() {
		r.shares.readers.remove(t)
		r.shares.leased.remove(t)
		w.tenure(t).reading.pruned = true
		w.dropEntries(t, asker)
	}
	if t := r.shares.short; t != nobody && idle && !w.bugs.shortIsIgnored {
		r.shares.short = nobody
		w.dropEntries(t, asker)
	}
}

// dropEntries forgets the entries of a process that does not react.
func (w *world) dropEntries(t, asker id) {
	p := w.owned(t)
	if asker != nobody && w.owned(asker) == p {
		return
	}
	if x := w.tenure(t); !p.dead && x.phase == over && !x.reading.pruned {
		w.violated(dropped, "the entries of t%d's process go, which has ended it itself", t)
	}
	w.each(w.clientOf(t), func(q id, x *tenure) {
		w.redis.remove(q)
		x.placed = false
	})
}

// serve is that of rwlock/grant.lua: it gives the lock to one writer, or to all readers up to the next. That
// may be the caller, self. queues: the caller queues behind the grant.
func (w *world) serve(self id, queues bool) {
	r := &w.redis
	var told [maxTenures]id
	granted, messages := int8(0), 0
	for granted < w.batch && r.queued > 0 {
		t := r.queue[0]
		reads := w.tenure(t).reading.reader
		lives := t == self || w.owned(t).link == up || w.owned(t).link == halfOpen
		if written, _ := r.mode(); !r.fits(reads) && (written || lives || w.bugs.deadHeadStays) {
			if next := w.nextReader(); !written && next != nobody && w.bugs.servePast {
				w.ownRead(next)
				r.remove(next)
				told[messages] = next
				messages++
				continue
			}
			break
		}
		if !lives {
			r.remove(t)
			continue
		}
		if reads {
			w.ownRead(t)
			r.remove(t)
		} else {
			r.remove(t)
			w.ownWrite(t, t != self, true)
		}
		granted++
		if t != self {
			told[messages] = t
			messages++
		}
		if !reads {
			break
		}
	}
	for _, t := range told[:messages] {
		w.tellGrant(t, queues || r.queued > 0)
	}
	if granted == w.batch && r.queued > 0 && !w.bugs.runEnds {
		w.publish(message{kind: recheck, id: r.queue[0]})
	}
}

// nextReader is the first reader in the queue whose inbox is counted.
func (w *world) nextReader() id {
	for _, t := range w.redis.queue[:w.redis.queued] {
		if w.tenure(t).reading.reader && w.owned(t).link == up {
			return t
		}
	}
	return nobody
}

func (w *world) tellGrant(t id, others bool) {
	a := w.yoursHalf(t)
	w.publish(message{kind: granted, id: t, token: a.token, block: a.block, others: others, moment: a.moment})
}

// tellOwners sends a message of a kind to the processes that hold the lock.
func (w *world) tellOwners(k kind, token int8) {
	for t := range w.redis.owners() {
		w.publish(message{kind: k, id: t, token: token})
	}
}

// giveBack is that of rwlock/grant.lua, after the entries of the ids were removed.
func (w *world) giveBack(ids ...id) {
	r := &w.redis
	free, owned := !r.owned(), false
	for _, t := range ids {
		r.remove(t)
		owned = owned || r.owns(t)
		if r.owner == t {
			r.owner = nobody
			if !w.bugs.shortStays {
				r.confirmed(t)
			}
		}
		if r.reads(t) && w.bugs.releaseDeletes {
			r.shares.readers, r.shares.leased = 0, 0
		}
		r.shares.readers.remove(t)
		r.shares.leased.remove(t)
	}
	if free || owned || !w.bugs.cancelIsSilent {
		w.serve(nobody, false)
	}
}

// offerHalf is rwlock/offer.lua.
func (w *world) offerHalf(old, fresh id) answer {
	r := &w.redis
	switch {
	case r.owner == fresh && old != fresh:
		r.confirmed(fresh)
		return w.yours()
	case r.owner != old:
		return answer{kind: gone}
	}
	r.owner = nobody
	queues := !w.tenure(fresh).linger.tried
	w.serve(nobody, queues)
	if !r.owned() {
		w.ownWrite(fresh, false, true)
		return w.yours()
	}
	if !queues {
		return answer{kind: busy}
	}
	r.push(fresh)
	return w.queuedNow()
}

// downgrade is rwlock/downgrade.lua.
func (w *world) downgrade(t id) (reads, others bool) {
	r := &w.redis
	switch {
	case r.owner == t:
		w.beginReading(t)
	case r.reads(t) && !w.bugs.downgradeOnce:
	case w.bugs.downgradeRevives && r.owner == nobody:
		w.beginReading(t)
	default:
		return false, false
	}
	if !w.bugs.downgradeAlone {
		w.serve(nobody, false)
	}
	return true, r.queued > 0
}

func (w *world) beginReading(t id) {
	r := &w.redis
	r.owner = nobody
	r.confirmed(t)
	r.shares.readers.add(t)
	r.shares.leased.add(t)
	w.tenure(t).reading.pruned = false
}

// forceHalf is rwlock/force.lua, of the half that holds.
func (w *world) forceHalf() {
	r := &w.redis
	taken, owners := w.readToken(), shares{readers: r.shares.readers}
	if r.owner != nobody {
		owners.readers.add(r.owner)
	}
	r.counter++ // for readers that come next
	r.token, r.block = r.counter, false
	r.owner, r.shares = nobody, shares{}
	w.serve(nobody, false)
	for t := range owners.readers.all() {
		w.tenure(t).taken = taken
		w.publish(message{kind: forced, id: t, token: taken})
	}
}

// lateRenewal is rwlock/renew.lua for a reader.
func (w *world) lateRenewal(t id) {
	r := &w.redis
	if r.reads(t) || w.bugs.renewalRevives {
		r.shares.readers.add(t)
		r.shares.leased.add(t)
		w.forgiven()
	}
}
