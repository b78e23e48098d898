package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// checker accepts a recorded run as one of the model's Redis, or names the first step that is none. A lease
// may end by itself when it is time, and a client may stop listening. Where the record does not say whether
// that was before a step or after it, the run goes on from either.
type checker struct {
	names     map[string][]*traced     // what each lock may be
	pools     map[string][]*tracedPool // and each semaphore
	listening []string
	now       int64
	steps     int
	taken     map[string]int // how many of each script
	doubts    int            // steps after which a lock could be in several states
	last      []string       // a few steps, for whoever looks into it
}

// recent is how many steps before the first that is none are shown, and mostStates in how many states a lock
// may be at once.
const recent, mostStates = 8, 64

// newChecker is for names of these families.
func newChecker(names map[string]lua.Family) *checker {
	c := &checker{names: map[string][]*traced{}, pools: map[string][]*tracedPool{}, taken: map[string]int{}}
	for name, family := range names {
		switch family {
		case lua.Leased, lua.Plain:
			c.pools[name] = []*tracedPool{newTracedPool(name, family == lua.Plain)}
		default:
			c.names[name] = []*traced{newTraced(name, family == lua.ReadWrite)}
		}
	}
	return c
}

// check takes the next step. The first error is what names the step that is none of the model.
func (c *checker) check(s redistest.Step) error {
	m := moment{c.now, s.Now}
	was := c.listening
	c.now, c.listening = s.Now, s.Listening
	c.steps++
	c.taken[s.Script]++
	family, script, _ := strings.Cut(s.Script, "/")
	if s.Script = script; script == "" {
		return nil
	}
	name := s.Keys[0]
	if i := strings.Index(name, "}:"); i > 0 && script == "renew" && family == lua.Leased.String() {
		name = name[1:i]
	}
	before := c.are(name)
	var err error
	switch failed, _ := s.Reply.(redistest.ReplyError); {
	case failed != "":
		err = errStep("an error")
	case s.Script == "renew":
		err = c.renew(&s, m)
	case c.pools[name] != nil:
		err = c.trade(name, &s, m, was)
	case s.Script == "inspect":
		err = c.each(name, func(k *traced) ([]*traced, error) { return []*traced{k}, k.inspected(&s) })
	default:
		call, owner := newCall(s.Script, s.Args), c.names[name][0].owner
		err = c.each(name, func(k *traced) ([]*traced, error) { return k.next(&call, &s, m, was) })
		if after := c.names[name]; err == nil && len(after) == 1 { // else an id may be in one of them
			after[0].forget(append(call.ids, call.id, call.old, owner)...)
		}
	}
	step := fmt.Sprintf("%s: %s %q replies %v, publishes %q", name, s.Script, s.Args, s.Reply, s.Messages)
	if err != nil {
		return fmt.Errorf("step %d, of %s: %w\n%s\nlistening %q, then %q; before:\n%s",
			c.steps, step, err, before, was, s.Listening, strings.Join(c.last, "\n"))
	}
	if max(len(c.names[name]), len(c.pools[name])) > 1 {
		c.doubts++
	}
	c.last = append(c.last[max(0, len(c.last)-recent+1):],
		fmt.Sprintf("%s\n  listening %q\n  %s", step, s.Listening, c.are(name)))
	return nil
}

// are are the states that a name may be in.
func (c *checker) are(name string) string {
	if pools := c.pools[name]; pools != nil {
		return fmt.Sprint(pools)
	}
	return fmt.Sprint(c.names[name])
}

// trade is a step of a semaphore.
func (c *checker) trade(name string, s *redistest.Step, m moment, was []string) (err error) {
	step := func(k *tracedPool) ([]*tracedPool, error) { return []*tracedPool{k}, k.inspected(s) }
	if s.Script != "inspect" {
		call := newPermitCall(s.Script, c.pools[name][0].plain, s.Args)
		step = func(k *tracedPool) ([]*tracedPool, error) { return k.next(call, s, m, was) }
	}
	c.pools[name], err = follow(c.pools[name], step)
	return err
}

// each has every state that a lock may be in take a step.
func (c *checker) each(name string, step func(k *traced) (after []*traced, err error)) (err error) {
	c.names[name], err = follow(c.names[name], step)
	return err
}

// follow has all states take a step. One that cannot is dropped. When none can, the error is that of the
// first, and they stay as they are.
func follow[K fmt.Stringer](states []K, step func(k K) (after []K, err error)) (all []K, first error) {
	known := map[string]bool{}
	for _, k := range states {
		after, err := step(k)
		if errors.Is(err, errRoom) {
			return states, err
		}
		if first == nil {
			first = err
		}
		for _, k := range after {
			if text := k.String(); err == nil && !known[text] {
				known[text] = true
				all = append(all, k)
			}
		}
	}
	switch {
	case len(all) == 0:
		return states, first
	case len(all) > mostStates:
		return states, errRoom
	}
	return all, nil
}

// next takes a step after whatever may have happened by itself. It returns all states that may follow, and
// the first error when there is none.
func (k *traced) next(call *call, s *redistest.Step, m moment, was []string) (all []*traced, first error) {
	var may []end
	start := k.clone()
	for _, e := range k.ends(call, m) {
		if e.must {
			e.do(start)
		} else {
			may = append(may, e)
		}
	}
	doubtful := k.doubtful(was, s.Listening)
	for guess := range 1 << (len(may) + len(doubtful)) {
		up := func(client string) bool {
			if i := slices.Index(doubtful, client); i >= 0 {
				return guess>>(len(may)+i)&1 == 0
			}
			return slices.Contains(s.Listening, lua.Inbox(client))
		}
		var t trial
		err := errRoom
		for room := maxClients; room > 0 && errors.Is(err, errRoom); room-- { // fewer clients may have more ids each
			t = trial{traced: start.clone(), call: call, step: s, moment: m, room: room, up: up}
			for i, e := range may {
				if guess>>i&1 == 1 {
					e.do(t.traced)
				}
			}
			err = t.run()
		}
		if errors.Is(err, errRoom) {
			return nil, err
		}
		if err == nil {
			all = append(all, t.traced)
		} else if first == nil {
			first = err
		}
	}
	if len(all) > 0 {
		first = nil
	}
	return all, first
}

// doubtful are the clients concerned that have stopped listening before the step, or after it.
func (k *traced) doubtful(was, is []string) (clients []string) {
	for _, channel := range was {
		client := strings.TrimPrefix(channel, lua.Inbox(""))
		concerned := lua.ClientOf(k.owner) == client ||
			slices.ContainsFunc(k.queue, func(id string) bool { return lua.ClientOf(id) == client })
		if concerned && !slices.Contains(is, channel) {
			clients = append(clients, client)
		}
	}
	return clients
}

func (c *checker) renew(s *redistest.Step, m moment) error {
	replies, ok := s.Reply.([]any)
	holds := len(s.Args) / 2
	if !ok || len(replies) != holds+1 {
		return errStep("a reply that none of the model's is")
	}
	for i := range holds {
		id, lease, done := s.Args[2*i], number(s.Args[2*i+1]), replies[i] == int64(1)
		name := s.Keys[i*len(s.Keys)/holds]
		var err error
		if pool, ok := strings.CutSuffix(name, "}:timeout"); ok {
			name = pool[1:]
			c.pools[name], err = follow(c.pools[name], func(k *tracedPool) ([]*tracedPool, error) {
				k = k.clone()
				return []*tracedPool{k}, k.renewed(id, lease, done, m)
			})
		} else {
			err = c.each(name, func(k *traced) ([]*traced, error) { return []*traced{k}, k.renewed(id, lease, done, m) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inspected compares how many wait, and who owns a lock.
func (k *traced) inspected(s *redistest.Step) error {
	list, ok := s.Reply.([]any)
	if !ok || len(list) < 5 {
		return errStep("a reply that none of the model's is")
	}
	if list[3] != int64(len(k.queue)) {
		return errStep("%d are queued", len(k.queue))
	}
	if list[0] != "" && list[0] != k.owner && !k.readWrite {
		return errStep("the owner is another")
	}
	return nil
}
