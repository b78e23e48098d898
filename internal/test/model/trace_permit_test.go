package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// tracedPool is a semaphore as the steps so far have left it.
type tracedPool struct {
	pool[string]

	name   string
	plain  bool
	ends   map[string]span  // of the leases of those who hold
	leases map[string]int64 // ms, that each id asks for
	done   map[string]string
	stated string // the capacity that was declared last, and when its client began
}

func newTracedPool(name string, plain bool) *tracedPool {
	return &tracedPool{
		name: name, plain: plain, ends: map[string]span{}, leases: map[string]int64{}, done: map[string]string{},
	}
}

// clone shares the leases that ids ask for.
func (k *tracedPool) clone() *tracedPool {
	n := *k
	n.held, n.queue, n.ends, n.done = slices.Clone(k.held), slices.Clone(k.queue), maps.Clone(k.ends), maps.Clone(k.done)
	return &n
}

func (k *tracedPool) String() string {
	held := slices.SortedFunc(slices.Values(k.held), func(a, b holding[string]) int { return strings.Compare(a.id, b.id) })
	return fmt.Sprintf("set %t, %d free, held %v, queue %v, %d was given out, declared %q",
		k.set, k.free, held, k.queue, k.last, k.stated)
}

// next takes a step after whatever may have happened by itself: leases were over, and clients did not listen
// any more. It returns all states that may follow, and the first error when there is none.
func (k *tracedPool) next(c *permitCall, s *redistest.Step, m moment, was []string) (all []*tracedPool, first error) {
	start := k.clone()
	var may []string
	for i := range start.held {
		switch h := &start.held[i]; {
		case h.over, k.plain:
		case k.ends[h.id].mustBeOver(m):
			h.over = true
		case k.ends[h.id].mayBeOver(m):
			may = append(may, h.id)
		}
	}
	doubtful := k.doubtful(was, s.Listening, lua.ClientOf(c.client))
	if len(may)+len(doubtful) > 10 {
		return nil, errRoom
	}
	for guess := range 1 << (len(may) + len(doubtful)) {
		t := permitTrial{tracedPool: start.clone(), call: c, step: s, moment: m}
		t.up = func(client string) bool {
			if i := slices.Index(doubtful, client); i >= 0 {
				return guess>>(len(may)+i)&1 == 0
			}
			return slices.Contains(s.Listening, lua.Inbox(client))
		}
		for i := range t.held {
			if at := slices.Index(may, t.held[i].id); at >= 0 {
				t.held[i].over = guess>>at&1 == 1
			}
		}
		if err := t.run(); err == nil {
			all = append(all, t.tracedPool)
		} else if first == nil {
			first = err
		}
	}
	if len(all) > 0 {
		first = nil
	}
	return all, first
}

// doubtful are the clients that wait, and have stopped listening before the step, or after it. The one that
// calls may begin to wait with the step, and be granted something by another request of it.
func (k *tracedPool) doubtful(was, is []string, calls string) (clients []string) {
	for _, channel := range was {
		client := strings.TrimPrefix(channel, lua.Inbox(""))
		waits := client == calls || slices.ContainsFunc(k.queue, func(p place[string]) bool { return lua.ClientOf(p.id) == client })
		if waits && !slices.Contains(is, channel) {
			clients = append(clients, client)
		}
	}
	return clients
}

// renewed is the answer to a renewal.
func (k *tracedPool) renewed(id string, lease int64, done bool, m moment) error {
	at := slices.IndexFunc(k.held, func(h holding[string]) bool { return h.id == id })
	holds := at >= 0 && !k.held[at].over
	switch {
	case !done && holds && !k.ends[id].mayBeOver(m):
		return errStep("%s holds permits, and cannot renew them", id)
	case !done && holds:
		k.held[at].over = true
	case done && (!holds || k.ends[id].mustBeOver(m)):
		return errStep("%s renews what it does not hold", id)
	case done:
		k.held[at].short = false
		k.ends[id] = m.later(lease)
	}
	return nil
}

// inspected compares how many are free or held, and how many wait.
func (k *tracedPool) inspected(s *redistest.Step) error {
	list, ok := s.Reply.([]any)
	if !ok || len(list) != 6 {
		return errStep("a reply that none of the model's is")
	}
	is, _ := whole(list[0])
	free, _ := whole(list[1])
	held, _ := whole(list[2])
	waits, _ := whole(list[3])
	switch {
	case is == 1 != k.set || waits != int64(len(k.queue)):
		return errStep("it replies %v", list[:4])
	case k.plain && free != int64(k.free), !k.plain && k.set && free+held != int64(k.capacity()):
		return errStep("it replies that %d are free and %d held", free, held)
	}
	return nil
}

// permitTrial is what is to be found out about one step: whether the model does what the script did.
type permitTrial struct {
	*tracedPool // as the step leaves it

	call   *permitCall
	step   *redistest.Step
	moment moment
	up     func(client string) bool

	base    int64           // the last number before
	numbers map[int64]int64 // those that the model gave out, as they are
	spare   map[int64]int64 // by the same: how many were reserved behind it
	whole   []string        // whose lease began anew, not short
}

func (t *permitTrial) run() error {
	t.base, t.numbers, t.spare = t.last, map[int64]int64{}, map[int64]int64{}
	c := t.call
	client := lua.ClientOf(c.client)
	s := &trade[string]{
		pool: &t.pool, permitBugs: &permitBugs{}, plain: t.plain,
		mine:  func(id string) bool { return lua.ClientOf(id) == client },
		mates: func(a, b string) bool { return lua.ClientOf(a) == lua.ClientOf(b) },
		alive: func(id string) bool { return t.up(lua.ClientOf(id)) },
	}
	for _, e := range c.leaves {
		t.leave(e)
	}
	t.held = slices.DeleteFunc(t.held, func(h holding[string]) bool { return t.plain && slices.Contains(c.answered, h.id) })
	s.begin(c.gives)
	err := t.act(s)
	if err == nil {
		s.commit()
		err = t.heard(s)
	}
	if err == nil {
		err = t.settle()
	}
	return err
}

// leave removes an entry, or all copies of it.
func (t *permitTrial) leave(e leaving) {
	gone := 0
	t.queue = slices.DeleteFunc(t.queue, func(p place[string]) bool {
		if p.id != e.id || e.once && gone > 0 {
			return false
		}
		gone++
		return true
	})
}

// act is the script, in the model, and compares the reply.
func (t *permitTrial) act(s *trade[string]) error {
	c, reply := t.call, t.step.Reply
	switch c.script {
	case "trade":
		replies, ok := reply.([]any)
		if !ok || len(replies) != len(c.requests) {
			return errStep("a reply that none of the model's is")
		}
		for i := range c.requests {
			if err := t.request(s, &c.requests[i], replies[i]); err != nil {
				return err
			}
		}
	case "leave":
		s.leave(c.ids...)
		if list, ok := reply.([]any); !ok || len(list) > 0 {
			return errStep("it replies %v", reply)
		}
	case "capacity":
		if is, said := t.change(s), fmt.Sprint(reply); is != said {
			return errStep("it replies %s, and the model %s", said, is)
		}
	case "delete":
		is := t.done[c.client]
		if is == "" {
			if is = "0"; t.set {
				is = "1"
			}
			t.done[c.client], t.stated = is, ""
			s.destroy()
		}
		if said := fmt.Sprint(reply); is != said {
			return errStep("it replies %s, and the model %s", said, is)
		}
	default:
		return errStep("%s is not modelled", c.script)
	}
	return nil
}

// request is one of those that share a script.
func (t *permitTrial) request(s *trade[string], r *permitRequest, reply any) error {
	said := func(is bool) error {
		if n, _ := whole(reply); n == 1 != is || n != 1 && n != 0 {
			return errStep("it replies %v to %s, and the model %t", reply, r.id, is)
		}
		return nil
	}
	switch r.kind {
	case "give":
		return said(s.give(r.id, int(r.keep)))
	case "put":
		if n, _ := whole(reply); n == -4 && !t.set {
			return nil
		}
		return said(s.put(r.id, r.n))
	}
	list, _ := reply.([]any)
	head := int64(-100)
	if len(list) > 2 {
		head, _ = whole(list[0])
	}
	switch late := head == -6; {
	case late && (r.until == 0 || t.moment.after+precision < r.until):
		return errStep("late, before the deadline")
	case late:
		return nil
	case r.until != 0 && t.moment.before > r.until+precision:
		return errStep("the deadline was over")
	}
	t.leases[r.id] = r.lease
	a := s.take(r.id, r.demand, r.mode)
	return t.answered(s, r, a, reply, list, head)
}

// answered compares the reply to a take.
func (t *permitTrial) answered(s *trade[string], r *permitRequest, a permitAnswer, reply any, list []any, head int64) error {
	differs := errStep("it replies %v to %s, and the model %s %+v", reply, r.id, permitReplies[a.kind], a)
	switch a.kind {
	case owner:
		token, single := whole(reply)
		if single {
			list = []any{int64(0), token, int64(0), int64(0)}
		} else if head != 0 || len(list) != 4 {
			return differs
		}
		token, _ = whole(list[1])
		more, _ := whole(list[2])
		if r.drains && (single || more != int64(a.n)) {
			return differs
		}
		if r.drains {
			more = 0
		}
		t.whole = append(t.whole, r.id)
		return t.number(r.id, a.token, token, more, a.block)
	case queued:
		if head < 0 || len(list) < 3 || head > 0 != a.placed || len(list) == 4 != (a.others && a.placed) && head != 0 {
			return differs
		}
		if a.placed {
			return t.number(r.id, s.last, head, 0, 0)
		}
		return nil
	}
	if len(list) != 3 || head != permitCodes[a.kind] {
		return differs
	}
	if n, _ := whole(list[1]); a.kind == tooMany && n != int64(t.capacity()) {
		return differs
	}
	return nil
}

var permitCodes = map[reply]int64{busy: -1, unset: -4, tooMany: -5}

var permitReplies = map[reply]string{
	owner: "that it holds", queued: "that it is queued", busy: "that too few are free", unset: "that nobody has set a number",
	tooMany: "that there are fewer",
}

// number compares a number that the model gave out with the one that there was. more were reserved behind it,
// and most could be.
func (t *permitTrial) number(to string, model, is, more, most int64) error {
	known, again := t.numbers[model]
	switch {
	case t.plain && model == 1 && is == 1:
	case model <= t.base && is != model:
		return errStep("%s has number %d, and is told %d", to, model, is)
	case again && known != is:
		return errStep("%s is told number %d, and another one %d", to, is, known)
	case more > most:
		return errStep("%s is told that %d are reserved, and asks for %d", to, more, most)
	case model > t.base && is <= max(t.base, t.call.floor):
		return errStep("%s is told number %d, after %d was given out, and it has seen %d", to, is, t.base, t.call.floor)
	case model > t.base:
		t.numbers[model], t.spare[model] = is, more
	}
	return nil
}

// heard compares the messages.
func (t *permitTrial) heard(s *trade[string]) error {
	was := slices.Clone(t.step.Messages)
	was = slices.DeleteFunc(was, func(p redistest.Published) bool {
		m := lua.ParseMessage(p.Text)
		return m.Name != t.name || m.Kind == lua.Ends || m.Kind == lua.Ping
	})
	for _, d := range s.sent {
		i := slices.IndexFunc(was, func(p redistest.Published) bool {
			m := lua.ParseMessage(p.Text)
			to := strings.TrimPrefix(p.Channel, lua.Inbox(""))
			same := to+":"+strings.Fields(p.Text)[2] == d.id
			return same && permitKinds[m.Kind] == d.kind
		})
		if i < 0 {
			return errStep("no message to %s: %s", d.id, permitKindNames[d.kind])
		}
		m := lua.ParseMessage(was[i].Text)
		was = slices.Delete(was, i, i+1)
		switch {
		case d.kind == forced && m.Token != d.token:
			return errStep("%s hears that %d was taken, and it was %d", d.id, m.Token, d.token)
		case d.kind != granted:
			continue
		case d.block > 0 && m.Others != d.others:
			return errStep("a grant to %s says that others wait: %t", d.id, m.Others)
		case m.Lease != min(t.leases[d.id], notConfirmed) && !t.plain:
			return errStep("a grant to %s is for %d ms", d.id, m.Lease)
		}
		if err := t.number(d.id, d.token, m.Token, m.Reserved, d.block); err != nil {
			return err
		}
	}
	if s.unanswered { // it does not call who was called a moment ago
		was = slices.DeleteFunc(was, func(p redistest.Published) bool {
			client := strings.TrimPrefix(p.Channel, lua.Inbox(""))
			return lua.ParseMessage(p.Text).Kind == lua.Ask && client != lua.ClientOf(t.call.client)
		})
	}
	if len(was) > 0 {
		return errStep("a message to %s: %s", was[0].Channel, was[0].Text)
	}
	return nil
}

var (
	permitKinds     = map[lua.Kind]kind{lua.Grant: granted, lua.Ask: recheck, lua.Forced: forced, lua.Want: want}
	permitKindNames = map[kind]string{granted: "grant", recheck: "ask", forced: "forced", want: "want"}
)

// settle puts the numbers and the times in place of the model's.
func (t *permitTrial) settle() error {
	last := t.base
	for _, model := range slices.Sorted(maps.Keys(t.numbers)) {
		if is := t.numbers[model]; is <= last {
			return errStep("number %d is given out after %d", is, last)
		}
		last = t.numbers[model] + t.spare[model]
	}
	t.last = last
	left := map[string]span{}
	for i := range t.held {
		h := &t.held[i]
		left[h.id] = t.ends[h.id]
		lease := t.leases[h.id]
		if model := h.token; model > t.base && !t.plain {
			is, known := t.numbers[model]
			if !known {
				return errStep("%s was granted permits, and was not told", h.id)
			}
			h.token, h.reserved = is, t.spare[model]
			if h.short {
				lease = min(lease, notConfirmed)
			}
			left[h.id] = t.moment.later(lease)
		}
		if slices.Contains(t.whole, h.id) {
			left[h.id] = t.moment.later(lease)
		}
	}
	t.ends = left
	return nil
}
