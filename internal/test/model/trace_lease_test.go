package model

import (
	"slices"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// notConfirmed and outlives are SHORT and OUTLIVES of shared/inbox.lua; always is from when on a lock's key
// needs to live no longer than the lease (lock/grant.lua). In ms.
const notConfirmed, outlives, always = 2000, 1000, 10_000

// owns notes what an id has that was told so: by a message, if now is not 0.
func (t *trial) owns(id string, given bool, s said, now int64) {
	t.told = append(t.told, id)
	lease, byMessage := t.claims[id].lease, now != 0
	first := min(lease, notConfirmed) // until its first renewal
	switch n := t.lens.ids[id]; {
	case t.readWrite && t.lens.redis.reads(n):
		ends, key := t.moment.later(lease), t.moment.later(lease)
		if byMessage {
			ends, key = t.moment.later(first), t.moment.later(first+outlives)
		}
		if len(t.readers) > 0 {
			key = key.or(t.key)
		}
		t.key, t.readers[id] = key, ends
		delete(t.lapsed, id)
		if s.token != t.token+t.reserved || t.unknown {
			t.token, t.reserved, t.unknown, t.writer = s.token, 0, false, ""
		}
		t.counter = max(t.counter, s.token)
		return
	case given:
		t.token, t.reserved, t.unknown = s.token, s.reserved, false
		t.counter = max(t.counter, s.token+s.reserved)
		t.writer = id
	}
	t.granted = 0
	switch {
	case !byMessage:
		t.key = t.moment.later(lease)
	case t.readWrite:
		t.key = t.moment.later(first)
		if first == lease {
			t.short = ""
		}
	default:
		t.key = t.moment.later(lease)
		if lease < always {
			t.key = t.moment.later(max(lease, first+outlives))
		}
		t.granted, t.shorted = now, first
	}
}

// settle notes what a step has ended, and checks that nobody was granted the lock who was not told.
func (t *trial) settle() error {
	c, b := t.call, &t.before
	if c.script == "downgrade" && b.owner == c.id {
		t.owns(c.id, false, said{token: c.token}, 0)
		t.token, t.reserved, t.unknown, t.writer = c.token, 0, false, ""
	}
	if t.owner != "" && t.owner != b.owner && !slices.Contains(t.told, t.owner) {
		return errStep("%s was granted the lock, and was not told", t.owner)
	}
	for n := range t.lens.redis.shares.readers.all() {
		if _, known := t.readers[t.lens.owners[n]]; !known {
			return errStep("%s was granted the lock to read, and was not told", t.lens.owners[n])
		}
	}
	if b.owner != "" && t.owner != b.owner && t.writer == b.owner {
		t.writer = "" // it has given the lock back
	}
	if c.script == "force" && t.readWrite && (b.owner != "" && c.half == "write" || len(t.ended) > 0) && len(t.told) == 0 {
		t.token, t.reserved, t.unknown, t.writer = max(t.counter, b.token+b.reserved), 0, true, ""
	}
	if t.owner == "" && !t.readWrite {
		t.token, t.reserved = 0, 0
	}
	return nil
}

// ends is what may have happened by itself before a step, or must have: a lease was over.
type end struct {
	must bool
	do   func(k *traced)
}

// ends are those of the leases, as far as the step's script looks at them.
func (k *traced) ends(c *call, m moment) (all []end) {
	if (k.owner != "" || len(k.readers) > 0) && k.key.mayBeOver(m) {
		all = append(all, end{k.key.mustBeOver(m), func(k *traced) { k.over() }})
	}
	for id, s := range k.readers {
		if !k.lapsed[id] && s.mayBeOver(m) {
			all = append(all, end{s.mustBeOver(m), func(k *traced) { k.lapsed[id] = true }})
		}
	}
	over := span{k.granted + k.shorted*1000 - reckoning, k.granted + k.shorted*1000 + reckoning}
	if c.script == "acquire" && k.owner != "" && k.owner != c.id && k.granted > 0 && over.mayBeOver(m) {
		all = append(all, end{over.mustBeOver(m), func(k *traced) {
			if client := lua.ClientOf(k.owner); client != lua.ClientOf(c.id) { // it does not react
				k.queue = slices.DeleteFunc(k.queue, func(id string) bool { return lua.ClientOf(id) == client })
			}
			k.over()
		}})
	}
	return all
}

// over ends what the lock's key says.
func (k *traced) over() {
	k.owner, k.granted = "", 0
	clear(k.readers)
	clear(k.lapsed)
	if !k.readWrite {
		k.token, k.reserved = 0, 0
	}
}

// renewed is the answer to a renewal.
func (k *traced) renewed(id string, lease int64, done bool, m moment) error {
	_, reads := k.readers[id]
	switch {
	case !done && k.holds(id) && !k.key.mayBeOver(m):
		return errStep("%s holds the lock, and cannot renew it", id)
	case !done && k.holds(id):
		k.over()
	case done && (!k.holds(id) || k.key.mustBeOver(m)):
		return errStep("%s renews what it does not hold", id)
	case done && reads:
		k.readers[id], k.key = m.later(lease), k.key.or(m.later(lease))
		delete(k.lapsed, id)
	case done:
		k.key, k.granted = m.later(lease), 0
		if k.short == id {
			k.short = ""
		}
	}
	return nil
}
