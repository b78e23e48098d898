package model

import "slices"

// The scripts. Each is one step, and knows nothing of the clients but whether their inboxes are subscribed
// to.

func (r *redis) place(t id) int {
	for n := range int(r.queued) {
		if r.queue[n] == t {
			return n
		}
	}
	return -1
}

func (r *redis) push(t id) (added bool) {
	if r.place(t) >= 0 {
		return false
	}
	r.queue[r.queued] = t
	r.queued++
	return true
}

func (r *redis) remove(t id) {
	n := r.place(t)
	if n < 0 {
		return
	}
	copy(r.queue[n:], r.queue[n+1:])
	r.queue[maxQueue-1] = nobody
	r.queued--
}

// acquire takes a lock that is free, or queues.
func (w *world) acquire(t id) answer {
	r := &w.redis
	switch {
	case w.readWrite:
		return w.acquireHalf(t)
	case r.owner == t:
		return w.yours()
	case r.owner == nobody && r.queued == 0:
		w.own(t, w.lingers[w.clientOf(t)] && !w.bugs.unmarked)
		return w.yours()
	}
	first := r.queued == 0
	if r.push(t) && first && r.block && !w.bugs.noWant { // first: somebody owns it
		w.publish(message{kind: want, id: r.owner})
	}
	if r.owner == nobody && !w.bugs.noGrantLoop {
		w.grant(t)
		if r.owner == t {
			return w.yours()
		}
	}
	return w.queuedNow()
}

// offer gives the lock to the head of the queue and queues fresh behind it, or makes fresh the owner.
func (w *world) offer(old, fresh id) answer {
	r := &w.redis
	switch {
	case w.readWrite:
		return w.offerHalf(old, fresh)
	case r.owner == fresh && old != fresh:
		return w.yours()
	case r.owner != old:
		return answer{kind: gone}
	}
	next := w.next(nobody)
	if next == nobody {
		w.own(fresh, true)
		return w.yours()
	}
	if w.tenure(fresh).linger.tried && !w.bugs.offerQueues {
		w.give(next)
		return answer{kind: busy}
	}
	if w.bugs.behindBack {
		w.give(next)
		r.push(fresh)
		return w.queuedNow()
	}
	r.push(fresh) // before the grant, which says whether somebody waits
	w.give(next)
	return w.queuedNow()
}

// release ends ids: what they own, and where they are queued.
func (w *world) release(ids ...id) {
	r := &w.redis
	if w.readWrite {
		w.giveBack(ids...)
		return
	}
	free := r.owner == nobody && !w.bugs.noGrantLoop
	for _, t := range ids {
		r.remove(t)
		free = free || r.owner == t
	}
	if free {
		w.grant(nobody)
	}
}

// force takes the lock away.
func (w *world) force() {
	if w.readWrite {
		w.forceHalf()
		return
	}
	t, token := w.redis.owner, w.redis.token
	w.tenure(t).taken = token
	w.grant(nobody)
	if w.bugs.forcedNoToken {
		token = 0
	}
	w.publish(message{kind: forced, id: t, token: token})
}

// grant gives a lock that is free, or is now, to the first in the queue who lives. That may be the caller,
// self.
func (w *world) grant(self id) {
	w.redis.owner, w.redis.token, w.redis.block = nobody, 0, false
	switch next := w.next(self); next {
	case nobody:
	case self:
		w.own(next, true)
	default:
		w.give(next)
	}
}

// next takes the first from the queue who lives.
func (w *world) next(self id) id {
	r := &w.redis
	for r.queued > 0 {
		t := r.queue[0]
		r.remove(t)
		if t == self {
			return t
		}
		switch p := w.owned(t); {
		case p.link == up, p.link == halfOpen, w.mute:
			return t
		case p.link == replica && w.bugs.publishCount && !p.dead: // published before it was counted
			r.counter++
			w.publish(message{kind: granted, id: t, token: r.counter, moment: r.counter, phantom: true})
		}
	}
	return nobody
}

// give makes t the owner and tells it.
func (w *world) give(t id) {
	w.own(t, true)
	r := &w.redis
	w.publish(message{kind: granted, id: t, token: r.token, block: r.block, others: r.queued > 0, moment: r.token})
}

// own makes t the owner, with a new token and perhaps a block of further ones.
func (w *world) own(t id, block bool) {
	r := &w.redis
	r.counter++
	r.owner, r.token, r.block = t, r.counter, block && w.block > 0
	if r.block && !w.bugs.notReserved {
		r.counter += w.block
	}
}

// yours is the reply to the owner.
func (w *world) yours() answer {
	r := &w.redis
	return answer{kind: owner, token: r.token, block: r.block, others: r.queued > 0, moment: r.token}
}

// queuedNow is the reply to a waiter. The server's clock goes with it, for which the token counter stands.
func (w *world) queuedNow() answer { return answer{kind: queued, token: w.redis.counter} }

// publish sends a message to the inbox of its id's client, if that hears.
func (w *world) publish(m message) {
	p := w.owned(m.id)
	if w.mute { // it asks after a while
		if m.kind == granted && !p.dead && w.tenure(m.id).phase == waiting {
			w.ask(m.id)
		}
		return
	}
	if p.dead || p.link == down || p.link == halfOpen {
		return
	}
	if w.readWrite && m.kind == want && slices.Contains(p.inbox[:p.unread], m) {
		return // it says nothing more
	}
	w.post(p, m)
}

func (w *world) post(p *client, m message) {
	p.inbox[p.unread] = m
	p.unread++
}
