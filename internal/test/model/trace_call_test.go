package model

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// What a script was asked for and has answered, as the headers of internal/lua say it.

// claim is what an id asks for.
type claim struct {
	lease   int64 // ms
	block   bool  // tokens to reserve
	lingers bool
	reads   bool
}

// call is a script's arguments.
type call struct {
	script string
	claim
	id    string   // the owner id that calls, or the fresh one of an offer
	old   string   // that is offered
	ids   []string // that leave
	bare  []string // of those, whose entries are not named: if there are some, they stay
	try   bool
	until int64 // deadline of an attempt
	first bool  // it says that the id was not sent before
	entry bool  // whether the id that is offered may be queued
	half  string
	floor int64
	clock int64 // as the client reckons it; 0: it does not
	token int64 // of a downgrade
}

var (
	entries = regexp.MustCompile(`^1:([^:]+:\d+):(\d+):(.*)$`)
	demands = regexp.MustCompile(`^(\d+)(l?)(s?)$`)
)

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%q is no number", text))
	}
	return n
}

func (c *claim) demand(text string) {
	d := demands.FindStringSubmatch(text)
	if d == nil {
		panic(fmt.Sprintf("a demand %q", text))
	}
	c.block, c.lingers, c.reads = number(d[1]) > 0, d[2] != "", d[3] != ""
}

// newCall reads the arguments of one script. Renewals are no calls of one id.
func newCall(script string, args []string) call {
	c := call{script: script, id: args[0]}
	if floor := args[1]; len(floor) == 16 {
		c.clock = number(floor)
	} else {
		c.floor = number(strings.TrimSpace(floor))
	}
	switch script {
	case "acquire", "offer":
		c.first = true
		if e := entries.FindStringSubmatch(c.id); e != nil && len(args) == 2 {
			c.id, c.lease = e[1], number(e[2])
			c.demand(e[3])
			break
		}
		c.lease = number(args[2])
		if len(args) > 3 {
			mode, until, _ := strings.Cut(args[3], " ")
			c.try, c.first = mode == "try", mode == "first"
			if until != "" {
				c.until = number(until)
			}
		}
		if len(args) > 4 {
			c.demand(args[4])
		}
		if script == "offer" {
			c.old, c.entry = args[6], args[7] != ""
		}
	case "release":
		c.ids = []string{c.id}
		if len(args) < 3 || args[2] == "" {
			c.bare = c.ids
		}
		if len(args) > 3 && args[3] != "0" {
			panic("a hold that rests is not modelled")
		}
	case "leave":
		for i := 2; i < len(args); i += 3 {
			c.ids = append(c.ids, args[i])
			if args[i+1] == "" {
				c.bare = append(c.bare, args[i])
			}
		}
	case "downgrade":
		c.lease, c.token = number(args[2]), number(args[3])
	case "force":
		c.half = args[2]
	}
	return c
}

// said is what an answer or a message says.
type said struct {
	kind            reply
	token, reserved int64
	others          bool
	sequence        int64 // of a place; 0: the id had one
	late            bool
}

func whole(x any) (int64, bool) {
	switch x := x.(type) {
	case int64:
		return x, true
	case string:
		n, err := strconv.ParseInt(x, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// read reads the reply to an acquire or an offer.
func (c *call) read(reply any) (s said, ok bool) {
	var n [4]int64
	switch x := reply.(type) {
	case string:
		s.kind = owner
		s.token, ok = whole(x)
		return s, ok
	case int64: // how long it is to wait; its place has the number that it has brought
		return said{kind: queued, sequence: c.clock}, true
	case []any:
		if len(x) < 3 || len(x) > 4 {
			return s, false
		}
		for i := range x {
			if n[i], ok = whole(x[i]); !ok {
				return s, false
			}
		}
		if len(x) == 4 {
			return said{kind: owner, token: n[1], reserved: n[2], others: n[3] == 1}, n[0] == 0
		}
	default:
		return s, false
	}
	switch n[0] {
	case -1:
		s.kind = busy
	case -3:
		s.kind = gone
	case -6:
		s.late = true
	case -9:
		s.kind = asked
	case -2, -4, -5, -7, -8:
		return s, false
	default:
		s.kind, s.sequence = queued, max(n[0], 0)
	}
	return s, true
}

// note is a message of the kinds that are modelled.
type note struct {
	said

	kind  kind
	id    string
	asker string
	now   int64
}

// notes are those of a step about a lock, to the clients that hear.
func notes(s *redistest.Step, name string, hears func(client string) bool) (all []note) {
	for _, p := range s.Messages {
		m := lua.ParseMessage(p.Text)
		client := strings.TrimPrefix(p.Channel, lua.Inbox(""))
		if m.Name != name || !hears(client) {
			continue
		}
		n := note{id: client + ":" + strings.Fields(p.Text)[2], asker: m.Asker, now: m.Now}
		n.token, n.reserved, n.others = m.Token, m.Reserved, m.Others
		switch m.Kind {
		case lua.Grant:
			n.kind = granted
		case lua.Want, lua.Attempt:
			n.kind = want
		case lua.Forced:
			n.kind = forced
		default: // when to ask again, which is time; and what clients send
			continue
		}
		all = append(all, n)
	}
	return behindGrants(all)
}

// behindGrants makes one message of a grant and of a want for the same id: either says that others wait.
func behindGrants(all []note) (rest []note) {
	wants := func(n note, id string) bool { return n.kind == want && n.asker == "" && n.id == id }
	for _, n := range all {
		if n.kind == granted {
			n.others = n.others || slices.ContainsFunc(all, func(m note) bool { return wants(m, n.id) })
		}
		if !slices.ContainsFunc(all, func(m note) bool { return m.kind == granted && wants(n, m.id) }) {
			rest = append(rest, n)
		}
	}
	return rest
}
