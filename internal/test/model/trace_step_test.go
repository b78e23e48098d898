package model

import (
	"fmt"
	"slices"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// trial is what is to be found out about one step of one lock: whether the model does what the script did, if
// these have happened before it.
type trial struct {
	*traced // as the step leaves it

	call   *call
	step   *redistest.Step
	moment moment
	up     func(client string) bool

	before traced         // without the maps
	room   int            // for so many clients
	lens   *lens          // what the model did
	fresh  map[int8]int64 // new tokens of the model, as they are
	ended  []string       // readers that are none any more
	told   []string       // who was granted the lock, and told so
}

// errStep is the error for a step that is none of the model.
func errStep(format string, args ...any) error { return fmt.Errorf(format, args...) }

// run has the model take the step, and compares.
func (t *trial) run() (err error) {
	t.before, t.fresh = *t.traced, map[int8]int64{}
	if late, err := t.begin(); late || err != nil {
		return err
	}
	if t.lens, err = newLens(t.traced, t.call, t.up, t.room); err != nil {
		return err
	}
	me := t.lens.ids[t.call.id]
	wasQueued := me != nobody && t.lens.redis.place(me) >= 0
	a, err := t.act(me)
	for _, check := range []func() error{
		t.take, t.heard, func() error { return t.answered(a, wasQueued) }, t.settle,
	} {
		if err == nil {
			err = check()
		}
	}
	return err
}

// begin notes what an id asks for. It reports whether the script came too late, and has done nothing.
func (t *trial) begin() (late bool, err error) {
	c := t.call
	for _, id := range c.ids {
		if i := slices.Index(t.queue, id); i >= 0 && slices.Contains(t.queue[i+1:], id) {
			return false, errStep("%s is queued twice", id)
		}
	}
	if c.script != "acquire" && c.script != "offer" {
		return false, nil
	}
	said, ok := c.read(t.step.Reply)
	switch {
	case !ok:
		return false, errStep("a reply that none of the model's is")
	case said.late && (c.until == 0 || t.moment.after+precision < c.until):
		return false, errStep("late, before the deadline")
	case !said.late && c.until != 0 && t.moment.before > c.until+precision:
		return false, errStep("the deadline was over")
	}
	t.claims[c.id] = c.claim
	if c.script == "offer" && c.entry && t.owner == c.old {
		t.queue = slices.DeleteFunc(t.queue, func(id string) bool { return id == c.old })
	}
	return said.late, nil
}

// act is the script, in the model. me is the id that calls.
func (t *trial) act(me id) (a answer, err error) {
	c, l := t.call, t.lens
	switch c.script {
	case "acquire":
		a = t.acquire(me)
	case "offer":
		l.tenure(me).linger.tried = c.try
		a = l.offer(l.ids[c.old], me)
	case "release", "leave":
		var ids []id
		for _, id := range c.ids {
			if n := l.ids[id]; n != nobody {
				ids = append(ids, n)
			}
		}
		l.release(ids...)
	case "downgrade":
		a = t.downgrade(me)
	case "force":
		t.force()
	default:
		return a, errStep("%s is not modelled", c.script)
	}
	return a, nil
}

// acquire is that of one who may wait, or only tries. The model has no attempts at a read-write lock: they
// are what does not queue, and tells nobody that it waits.
func (t *trial) acquire(me id) answer {
	l, r := t.lens, &t.lens.redis
	switch {
	case !t.call.try:
		return l.acquire(me)
	case !t.readWrite:
		l.tenure(me).linger = linger{tried: true, stage: first}
		return l.tryOnce(me)
	}
	queuedBefore := r.place(me) >= 0
	a := l.acquire(me)
	if a.kind != queued {
		return a
	}
	if !queuedBefore {
		r.remove(me)
	}
	for n := range l.clients {
		p := &l.clients[n]
		sent := slices.DeleteFunc(slices.Clone(p.inbox[:p.unread]), func(m message) bool { return m.kind == want })
		p.unread = int8(copy(p.inbox[:], sent))
	}
	return answer{kind: busy}
}

// force is a ForceUnlock of a half, or of the lock.
func (t *trial) force() {
	l := t.lens
	written, read := l.redis.mode()
	switch {
	case !t.readWrite && !written:
		l.grant(nobody)
	case !t.readWrite:
		l.force()
	case written && t.call.half == "write":
		l.force()
	case read && t.call.half == "read":
		if l.holderLeft(nobody); l.redis.owned() {
			l.force()
		} else {
			l.serve(nobody, false)
		}
	case !l.redis.owned():
		l.serve(nobody, false)
	}
}

func (t *trial) downgrade(me id) (a answer) {
	if me == nobody {
		return answer{}
	}
	if reads, others := t.lens.downgrade(me); reads {
		a = answer{kind: owner, others: others}
	}
	return a
}

// take takes what the model has left: who owns the lock, and who waits.
func (t *trial) take() error {
	l, r := t.lens, &t.lens.redis
	t.owner, t.short = l.owners[r.owner], l.owners[r.shares.short]
	if err := l.left(t.traced); err != nil {
		return err
	}
	for reader := range t.readers {
		if n := l.ids[reader]; !r.reads(n) {
			delete(t.readers, reader)
			delete(t.lapsed, reader)
			t.ended = append(t.ended, reader)
		}
	}
	return nil
}

// sameToken compares a token of the model with the one that there was. to is who was told.
func (t *trial) sameToken(to string, model int8, was int64) error {
	floor := int64(0)
	if to == t.call.id {
		floor = t.call.floor
	}
	if reader := t.readWrite && t.lens.redis.reads(t.lens.ids[to]); reader {
		return t.readToken(model, was)
	}
	switch given, known := t.fresh[model]; {
	case model <= counted:
		if was != t.before.token {
			return errStep("%s has token %d, and is told %d", to, t.before.token, was)
		}
		return nil
	case known && given != was:
		return errStep("%s is told token %d, and another one %d", to, was, given)
	case was <= t.before.counter || was <= floor:
		return errStep("%s is told token %d, after %d was given out, and it has seen %d", to, was, t.before.counter, floor)
	}
	t.fresh[model] = was
	return nil
}

// readToken is sameToken for a reader: that of those who read already, with all that were reserved for a
// writer who goes on reading. It is a new one where nobody reads, where that is not known, or smaller than
// one that the caller has seen, or a writer has not given the lock back.
func (t *trial) readToken(model int8, was int64) error {
	b, c := &t.before, t.call
	last := b.token + b.reserved
	stays, may := t.stayed()
	back := b.writer == "" || c.script == "force" || b.owner == b.writer && slices.Contains(append(c.ids, c.old, c.id), b.writer)
	if c.script == "downgrade" && b.owner == c.id {
		last, stays = c.token, true
	}
	fresh := model > counted || !back || last < max(c.floor, c.clock) || !stays && !may
	switch given, told := t.fresh[0]; {
	case told && given != was:
		return errStep("a reader is told token %d, and another one %d", was, given)
	case told:
	case may && was == last:
	case (fresh || may) && was <= b.counter, b.unknown && was <= last:
		return errStep("a reader is told token %d, after %d was given out", was, max(b.counter, last))
	case !fresh && !may && !b.unknown && was != last:
		return errStep("a reader is told token %d, and that of the others is %d", was, last)
	}
	t.fresh[0] = was
	return nil
}

// stayed reports whether others read before and after the step, and whether that is not known: there were
// only such whose lease was over.
func (t *trial) stayed() (stays, may bool) {
	c := t.call
	leaves := slices.Concat(c.ids, []string{c.old})
	if c.script == "release" {
		leaves = append(leaves, c.id)
	}
	for id := range t.before.readers {
		switch {
		case slices.Contains(leaves, id):
		case t.before.lapsed[id]:
			may = true
		default:
			return true, false
		}
	}
	return false, may
}

// answered compares the reply.
func (t *trial) answered(a answer, wasQueued bool) error {
	c, reply := t.call, t.step.Reply
	switch c.script {
	case "release":
		if n, _ := whole(reply); n == 1 != t.owned(c.id) {
			return errStep("it replies %v to an id that held the lock: %t", reply, t.owned(c.id))
		}
		return nil
	case "leave":
		if list, ok := reply.([]any); !ok || len(list) > 0 {
			return errStep("it replies %v", reply)
		}
		return nil
	case "force":
		held := len(t.ended) > 0 && c.half == "read" || t.before.owner != "" && (!t.readWrite || c.half == "write")
		readers := t.readWrite && c.half == "read" // their leases may have been over: then it says that nobody held it
		if n, _ := whole(reply); n == 1 != held && !readers {
			return errStep("it replies %v", reply)
		}
		return nil
	case "downgrade":
		list, _ := reply.([]any)
		if len(list) != 2 || (list[0] == int64(1)) != (a.kind == owner) || (list[1] == int64(1)) != a.others {
			return errStep("it replies %v, and the model %+v", reply, a)
		}
		return nil
	}
	s, _ := c.read(reply)
	if s.kind != a.kind {
		return errStep("it replies %v, and the model %s", reply, replies[a.kind])
	}
	switch a.kind {
	case owner:
		if err := t.sameToken(c.id, a.token, s.token); err != nil {
			return err
		}
		reader := t.lens.tenure(t.lens.ids[c.id]).reading.reader
		if (reader || s.reserved > 0) && s.others != a.others || s.reserved > 0 && !a.block {
			return errStep("it replies %v, and the model: others wait %t, reserves %t", reply, a.others, a.block)
		}
		t.owns(c.id, a.token > counted, s, 0)
	case queued:
		if s.sequence > 0 == wasQueued {
			return errStep("it replies %v to an id that was queued: %t", reply, wasQueued)
		}
		if s.sequence > 0 && s.sequence <= t.counter {
			return errStep("its place is %d, after %d was given out", s.sequence, t.counter)
		}
		t.counter = max(t.counter, s.sequence)
	}
	return nil
}

var replies = map[reply]string{
	0: "nothing", owner: "that it owns", queued: "that it is queued", gone: "that it is gone", busy: "that it is busy",
	asked: "that the owner was asked",
}

// owned reports whether an id held the lock before.
func (t *trial) owned(id string) bool { return t.before.owner == id || slices.Contains(t.ended, id) }

// heard compares the messages to those who listen.
func (t *trial) heard() error {
	was, model := notes(t.step, t.name, t.up), t.lens.sent()
	for _, m := range model {
		i := slices.IndexFunc(was, func(n note) bool { return n.kind == m.kind && n.id == m.id && n.asker == m.asker })
		if i < 0 {
			return errStep("no message to %s: %s", m.id, kindNames[m.kind])
		}
		n := was[i]
		was = slices.Delete(was, i, i+1)
		switch m.kind {
		case granted:
			if err := t.sameToken(m.id, int8(m.token), n.token); err != nil {
				return err
			}
			if n.reserved > 0 && m.reserved == 0 || (n.reserved > 0 || t.readWrite) && n.others != m.others {
				return errStep("a grant says %+v, and the model %+v", n.said, m.said)
			}
			t.owns(m.id, true, n.said, n.now)
		case forced:
			taken := t.before.token
			if t.readWrite {
				taken += t.before.reserved
			}
			if !t.before.unknown && n.token != taken {
				return errStep("%s hears that %d was taken, and it was %d", m.id, n.token, taken)
			}
		}
	}
	if len(was) > 0 {
		return errStep("a message to %s: %s", was[0].id, kindNames[was[0].kind])
	}
	return nil
}

var kindNames = map[kind]string{granted: "grant", want: "want", forced: "forced"}
