package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// checker accepts a recorded run as one of the model's Redis, or names the first step that is none. A lease
// may end by itself when it is time, and a client may stop listening. Where the record does not say whether
// that was before a step or after it, both are tried.
type checker struct {
	names     map[string]*traced
	listening []string
	now       int64
	steps     int
	taken     map[string]int // how many of each script
	guessed   int            // steps before which something had happened by itself
}

// newChecker is for these names: whether each is that of a read-write lock.
func newChecker(readWrite map[string]bool) *checker {
	c := &checker{names: map[string]*traced{}, taken: map[string]int{}}
	for name, rw := range readWrite {
		c.names[name] = newTraced(name, rw)
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
	_, s.Script, _ = strings.Cut(s.Script, "/")
	if s.Script == "" {
		return nil
	}
	k := c.names[s.Keys[0]]
	state := k.String()
	var err error
	switch failed, _ := s.Reply.(redistest.ReplyError); {
	case failed != "":
		err = errStep("an error")
	case s.Script == "renew":
		err = c.renew(&s, m)
	case s.Script == "inspect":
		err = k.inspected(&s)
	default:
		err = c.script(k, &s, m, was)
	}
	if err != nil {
		return fmt.Errorf("step %d: %s %q replies %v, publishes %q: %w\n%s\nlistening %q, then %q",
			c.steps, s.Script, s.Args, s.Reply, s.Messages, err, state, was, s.Listening)
	}
	return nil
}

// script tries all that may have happened by itself, from nothing on.
func (c *checker) script(k *traced, s *redistest.Step, m moment, was []string) error {
	call := newCall(s.Script, s.Args)
	var may []end
	start := k.clone()
	for _, e := range k.ends(&call, m) {
		if e.must {
			e.do(start)
		} else {
			may = append(may, e)
		}
	}
	var doubtful []string // whether they listen
	for _, channel := range was {
		client := strings.TrimPrefix(channel, lua.Inbox(""))
		waits := slices.ContainsFunc(k.queue, func(id string) bool { return lua.ClientOf(id) == client })
		if (waits || lua.ClientOf(k.owner) == client) && !slices.Contains(s.Listening, channel) {
			doubtful = append(doubtful, client)
		}
	}
	var first error
	for room := maxClients; room > 0; room-- { // fewer clients may have more ids each
		first = nil
		for guess := range 1 << (len(may) + len(doubtful)) {
			t := trial{traced: start.clone(), call: &call, step: s, moment: m, room: room}
			for i, e := range may {
				if guess>>i&1 == 1 {
					e.do(t.traced)
				}
			}
			t.up = func(client string) bool {
				if i := slices.Index(doubtful, client); i >= 0 {
					return guess>>(len(may)+i)&1 == 0
				}
				return slices.Contains(s.Listening, lua.Inbox(client))
			}
			err := t.run()
			if err == nil {
				if guess > 0 || len(k.ends(&call, m)) > len(may) {
					c.guessed++
				}
				*k = *t.traced
				return nil
			}
			if first == nil || errors.Is(err, errRoom) {
				first = err
			}
		}
		if !errors.Is(first, errRoom) {
			break
		}
	}
	return first
}

func (c *checker) renew(s *redistest.Step, m moment) error {
	replies, ok := s.Reply.([]any)
	holds := len(s.Args) / 2
	if !ok || len(replies) != holds+1 {
		return errStep("a reply that none of the model's is")
	}
	for i := range holds {
		k := c.names[s.Keys[i*len(s.Keys)/holds]]
		if err := k.renewed(s.Args[2*i], number(s.Args[2*i+1]), replies[i] == int64(1), m); err != nil {
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
