package model

import (
	"fmt"
	"regexp"
	"strings"
)

// permitCall is the arguments of a script of a semaphore.
type permitCall struct {
	script   string
	client   string // an id of the client that calls, or of the command
	floor    int64
	requests []permitRequest
	gives    int
	answered []string  // commands that are not sent again
	leaves   []leaving // entries to remove before anything else
	ids      []string  // that leave
	mode     string    // of a change of the capacity
	n        int64
	most     int64
	began    string
}

// leaving is an entry to remove: all copies of it, or one.
type leaving struct {
	id   string
	once bool
}

// permitRequest is one of those that share a script.
type permitRequest struct {
	demand

	kind, id string
	lease    int64
	mode     mode
	until    int64
	keep     int64
}

var permitDemands = regexp.MustCompile(`^(\d+)([dgpu]*)(?:t(\d+))?$`)

// newPermitCall reads the arguments of one script.
func newPermitCall(script string, plain bool, args []string) *permitCall {
	c := &permitCall{script: script, client: args[0], floor: number(strings.TrimSpace(args[1]))}
	switch script {
	case "trade":
		c.trade(plain, args)
	case "leave":
		for i := 2; i < len(args); i += 3 {
			c.ids = append(c.ids, args[i])
			c.client = args[i]
			if args[i+1] != "" {
				c.leaves = append(c.leaves, leaving{args[i], args[i+2] == "1"})
			}
		}
	case "capacity":
		c.mode, c.n, c.most, c.began = args[2], number(args[3]), number(args[4]), args[5]
	}
	return c
}

func (c *permitCall) trade(plain bool, args []string) {
	if len(args) < 9 { // a single request: see permit/quick.lua and permit/count.lua
		args = whole9(plain, args)
	}
	client, _, _ := strings.Cut(args[0], ":")
	for _, n := range strings.Fields(args[3]) {
		c.answered = append(c.answered, client+":"+n)
	}
	for i := 4; i < len(args); i += 5 {
		r := permitRequest{kind: args[i], id: args[i+1]}
		switch r.kind {
		case "take":
			r.lease = number(args[i+2])
			c.asks(&r, args[i+3], args[i+4])
		case "give":
			r.keep = number(args[i+3])
			c.gives++
			if args[i+2] != "" {
				c.leaves = append(c.leaves, leaving{id: r.id})
			}
		case "put":
			r.n = int(number(args[i+2]))
		default:
			panic(fmt.Sprintf("a request %q", r.kind))
		}
		c.requests = append(c.requests, r)
	}
}

// whole9 is what a single request is short for.
func whole9(plain bool, args []string) []string {
	or := func(i int, text string) string {
		if i < len(args) {
			return args[i]
		}
		return text
	}
	switch {
	case !plain && len(args) > 2:
		return []string{args[0], args[1], or(5, "100000"), "", "take", args[0], args[2], or(4, "first"), args[3]}
	case !plain:
		return []string{args[0], args[1], "0", "", "give", args[0], "", "0", ""}
	case len(args) > 4:
		return []string{args[0], args[1], or(6, "100000"), or(5, ""), "take", args[0], args[2], args[4], args[3]}
	default:
		return []string{args[0], args[1], "0", or(3, ""), "put", args[0], args[2], "", ""}
	}
}

func (c *permitCall) asks(r *permitRequest, how, what string) {
	name, until, _ := strings.Cut(how, " ")
	switch name {
	case "try":
		if r.mode = tryingIt; until != "" {
			r.until = number(until)
		}
	case "first":
		r.mode = atFirst
	}
	d := permitDemands.FindStringSubmatch(what)
	if d == nil {
		panic(fmt.Sprintf("a demand %q", what))
	}
	has := func(letter string) bool { return strings.Contains(d[2], letter) }
	r.demand = demand{n: int(number(d[1])), drains: has("d"), patient: has("g"), passes: has("p"), early: has("u")}
	if d[3] != "" {
		r.turns = number(d[3])
	}
}

// change is a change of the capacity, and the reply to it.
func (t *permitTrial) change(s *trade[string]) string {
	c := t.call
	total := func() int64 {
		switch {
		case !t.plain:
			return int64(t.capacity())
		case t.set:
			return int64(t.free)
		default:
			return 0
		}
	}
	say := func(code, number, rest int64) string { return fmt.Sprint([]any{code, number, rest}) }
	statement := c.began + ":" + fmt.Sprint(c.n)
	if before := t.done[c.client]; before != "" && c.mode != "state" {
		return before
	}
	switch c.mode {
	case "add", "drain":
		if !t.set {
			return say(-4, 0, 0)
		}
	case "try":
		if t.set {
			return say(0, total(), int64(t.free))
		}
	case "state":
		began, _, _ := strings.Cut(t.stated, ":")
		if t.set && (t.plain || t.stated == statement || began != "" && number(began) > number(c.began)) {
			return say(0, total(), int64(t.free))
		}
	}
	s.open = true
	s.reclaim()
	goal := c.n
	switch c.mode {
	case "add":
		goal += total()
	case "drain":
		goal = min(int64(t.free), 0)
	}
	if goal < 0 && !t.plain || max(goal, -goal) > c.most {
		return say(-6, total(), 0)
	}
	bonus := goal - total()
	s.change(int(goal))
	rest := int64(t.free)
	if c.mode == "drain" {
		rest = max(bonus, -bonus)
	}
	reply := say(1, total(), rest)
	if c.mode == "state" {
		t.stated = statement
	} else {
		t.done[c.client] = reply
	}
	return reply
}
