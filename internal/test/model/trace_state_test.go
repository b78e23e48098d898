package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// span is when a lease ends, in microseconds of the server's clock: not before from, and not after to.
type span struct{ from, to int64 }

// precision is what a lease's end may differ, as Redis counts milliseconds, in microseconds. reckoning is the
// same where clients reckon the server's clock.
const precision, reckoning = 2_000, 100_000

// later is the end of a lease of so many ms that a step gave.
func (m moment) later(ms int64) span {
	return span{m.before + ms*1000 - precision, m.after + ms*1000 + precision}
}

// moment is when a step ran.
type moment struct{ before, after int64 }

func (s span) mayBeOver(m moment) bool  { return m.after >= s.from }
func (s span) mustBeOver(m moment) bool { return m.before > s.to }

func (s span) or(t span) span { return span{max(s.from, t.from), max(s.to, t.to)} }

// traced is a lock or a read-write lock as the steps so far have left it: what redis is in the model, with
// the ids, tokens and times that there were.
type traced struct {
	name      string
	readWrite bool

	owner           string
	token, reserved int64 // the owner's, or the last writer's
	unknown         bool  // token: it is greater than it says
	counter         int64 // the greatest number that is known to have been given out
	queue           []string
	readers         map[string]span // and the ends of their leases
	lapsed          map[string]bool // readers whose lease is over
	short, writer   string          // see rwlock/state.lua

	key     span // the end of the lock's key
	granted int64
	shorted int64 // ms; the lease of what was granted by a message then, until its first renewal
	claims  map[string]claim
}

func newTraced(name string, readWrite bool) *traced {
	return &traced{
		name: name, readWrite: readWrite, readers: map[string]span{}, lapsed: map[string]bool{}, claims: map[string]claim{},
	}
}

// clone shares the claims.
func (k *traced) clone() *traced {
	n := *k
	n.queue, n.readers, n.lapsed = slices.Clone(k.queue), maps.Clone(k.readers), maps.Clone(k.lapsed)
	return &n
}

func (k *traced) String() string {
	text := fmt.Sprintf("owner %q, token %d+%d, readers %v", k.owner, k.token, k.reserved, slices.Sorted(maps.Keys(k.readers)))
	text = fmt.Sprintf("%s of %d given, queue %v", text, k.counter, k.queue)
	return fmt.Sprintf("%s, short %q, over %v", text, k.short, k.lapsed)
}

func (k *traced) holds(id string) bool {
	_, reads := k.readers[id]
	return k.owner == id || reads
}

// forget drops the claims of ids that are in no place any more.
func (k *traced) forget(ids ...string) {
	for _, id := range ids {
		if !k.holds(id) && !slices.Contains(k.queue, id) {
			delete(k.claims, id)
		}
	}
}

// errRoom says that a step concerns more than the arrays of the model hold.
var errRoom = errors.New("the model has no room for it")

// lens is a step as the model sees it: the ids that it concerns are numbered, and tokens are small. Of a long
// queue it has a part, and the entries of those who call. What is behind that part stays as it is if the
// last one of the part does. What stands in front of it does not listen, nor does the first of the part: if
// that one goes, they have gone before it.
type lens struct {
	world

	ids    map[string]id
	owners map[id]string
	slots  map[string]int // of the clients
	up     func(client string) bool
	room   bool
	placed map[string]bool // whose entries it has
	front  []string        // entries in front of the part
	first  string          // of the part, if there are some in front
	last   string          // of the part that is nobody's who calls; empty: nothing is behind
}

// shown and counted are the token and the counter that the model is shown. A greater token is a new one.
const shown, counted = 40, 60

// hidden is what is behind an id whose entry a release does not see.
const hidden = " hidden"

// newLens has room for so many clients.
func newLens(k *traced, c *call, up func(client string) bool, clients int) (*lens, error) {
	l := &lens{
		ids: map[string]id{}, owners: map[id]string{}, slots: map[string]int{}, up: up, room: true, placed: map[string]bool{},
		world: world{config: &config{processes: clients, block: 1, readWrite: k.readWrite, batch: 100}},
	}
	r := &l.redis
	r.counter = counted
	if k.token > 0 || k.unknown {
		r.token, r.block = shown, k.reserved > 0
	}
	if k.owner != "" {
		r.owner = l.number(k, k.owner)
		r.block = r.block || l.lingers[l.clientOf(r.owner)]
		if !k.readWrite && r.token == 0 {
			return nil, fmt.Errorf("%s has no token", k.owner)
		}
	} else if !k.readWrite {
		r.token, r.block = 0, false
	}
	mine := map[string]bool{}
	for _, id := range append([]string{c.id, c.old}, c.ids...) {
		queued := slices.Contains(k.queue, id) && !slices.Contains(c.bare, id)
		if id != "" && (len(c.ids) == 0 || k.holds(id) || queued) {
			l.number(k, id)
			mine[id] = true
		}
	}
	for id := range k.readers {
		t := l.number(k, id)
		r.shares.readers.add(t)
		if !k.lapsed[id] {
			r.shares.leased.add(t)
		}
	}
	if k.short != "" {
		r.shares.short = l.number(k, k.short)
	}
	if !l.room {
		return nil, errRoom
	}
	return l, l.see(k, c, mine)
}

// see shows the model a part of the queue, and those who call.
func (l *lens) see(k *traced, c *call, mine map[string]bool) error {
	r, last, cut := &l.redis, "", false
	queue := k.queue
	for len(queue) > 1 && l.passable(k, mine, queue[0]) && l.passable(k, mine, queue[1]) &&
		(!k.readWrite || lua.ClientOf(queue[0]) == lua.ClientOf(queue[1])) {
		l.front, l.first = append(l.front, queue[0]), queue[1]
		queue = queue[1:]
	}
	free := maxQueue // places that are for no one else
	for id := range mine {
		if slices.Contains(queue, id) && !slices.Contains(c.bare, id) || id == c.id && len(c.ids) == 0 {
			free--
		}
	}
	for _, id := range queue {
		mine := mine[id] && !slices.Contains(c.bare, id)
		if !mine && (cut || free == 0) {
			cut = true
			continue
		}
		name := id
		if slices.Contains(c.bare, id) {
			name += hidden
		}
		t := l.number(k, name)
		if t == nobody {
			l.room, cut = true, true
			continue
		}
		l.owners[t] = id
		r.queue[r.queued] = t
		r.queued++
		l.placed[id] = true
		if !mine {
			free--
			last = id
		}
	}
	if cut && (last == "" || k.readWrite) {
		return errRoom
	}
	if cut {
		l.last = last
	}
	return nil
}

// passable reports whether an entry is nobody's who listens or is concerned otherwise.
func (l *lens) passable(k *traced, mine map[string]bool, id string) bool {
	return !mine[id] && !k.holds(id) && !l.up(lua.ClientOf(id))
}

// number is the model's number of an id.
func (l *lens) number(k *traced, owner string) id {
	if t := l.ids[owner]; t != nobody {
		return t
	}
	client := lua.ClientOf(owner)
	n, known := l.slots[client]
	if !known {
		n = len(l.slots)
		if n == l.processes {
			l.room = false
			return nobody
		}
		l.slots[client] = n
		l.clients[n].link = down
		if l.up(client) {
			l.clients[n].link = up
		}
	}
	p := &l.clients[n]
	t := id(int(p.made)*l.processes + n + 1)
	if t > maxTenures {
		l.room = false
		return nobody
	}
	p.made++
	l.ids[owner], l.owners[t] = t, owner
	c := k.claims[strings.TrimSuffix(owner, hidden)]
	l.tenure(t).reading.reader = c.reads
	l.lingers[n] = l.lingers[n] || c.lingers
	return t
}

// sent are the messages of the step.
func (l *lens) sent() (all []note) {
	for n := range l.clients {
		p := &l.clients[n]
		for _, m := range p.inbox[:p.unread] {
			s := said{token: int64(m.token), others: m.others}
			if m.block {
				s.reserved = 1
			}
			all = append(all, note{kind: m.kind, id: l.owners[m.id], asker: l.owners[m.asker], said: s})
		}
	}
	return behindGrants(all)
}

// left takes the queue from the model.
func (l *lens) left(k *traced) error {
	stay := map[string]bool{}
	for _, t := range l.redis.queue[:l.redis.queued] {
		stay[l.owners[t]] = true
	}
	if l.last != "" && !stay[l.last] {
		return errRoom
	}
	for _, id := range l.front {
		stay[id] = stay[l.first]
		l.placed[id] = true
	}
	k.queue = slices.DeleteFunc(k.queue, func(id string) bool { return l.placed[id] && !stay[id] })
	for _, t := range l.redis.queue[:l.redis.queued] {
		if id := l.owners[t]; !slices.Contains(k.queue, id) {
			k.queue = append(k.queue, id)
		}
	}
	return nil
}
