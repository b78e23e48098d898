package latchkeytest

import (
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/session"
)

// orders is what is known of the locks of a test: those that are held, and the orders in which they were
// taken. Tests that are compared share the rules, and nothing else.
type orders struct {
	mu    *sync.Mutex // of the rules, and of what follows
	rules rules
	held  map[heldKey]holding
}

// heldKey is a hold: no two of a name have the same token, but for readers of one process.
type heldKey struct {
	name  string // without a prefix
	token int64
}

// holding is a hold of a client, or several that share its token.
type holding struct {
	step  step
	of    *process
	count int
}

// across are the rules that tests with AcrossTests share.
var across = struct {
	mu    sync.Mutex
	rules rules
}{rules: newRules()}

// tests are those of the binary that run, each with what it has by itself and what it has across tests.
var tests = struct {
	mu  sync.Mutex
	all map[testKey]*orders
}{all: map[testKey]*orders{}}

type testKey struct {
	t      testing.TB
	across bool
}

// ordersOf returns those of a test.
func ordersOf(t testing.TB, shared bool) *orders {
	tests.mu.Lock()
	defer tests.mu.Unlock()
	key := testKey{t, shared}
	o := tests.all[key]
	if o == nil {
		o = &orders{mu: &sync.Mutex{}, rules: newRules(), held: map[heldKey]holding{}}
		if shared {
			o.mu, o.rules = &across.mu, across.rules
		}
		tests.all[key] = o
		t.Cleanup(func() {
			tests.mu.Lock()
			defer tests.mu.Unlock()
			delete(tests.all, key)
		})
	}
	return o
}

// forgetHold forgets a hold whose hook may come too late.
func forgetHold(h *grant.Hold) {
	tests.mu.Lock()
	defer tests.mu.Unlock()
	for _, o := range tests.all {
		o.end(heldKey{h.Name(), h.Token()})
	}
}

// watch is the last option of a client: it puts the prefix of the test before that of the client, and the
// hooks of the kit before those of the program.
func (s *Server) watch(p *process) latchkey.Option {
	return session.Option(func(o *session.Options) {
		prefix, program := o.Prefix, o.Observer
		o.Prefix = s.prefix + o.Prefix
		step := func(e session.Event, c call) step {
			name := prefix + e.Name
			return step{name, s.config.class(name), c.place}
		}
		asked := func(e session.Event) {
			if c := caller(); c.waits() && e.Kind != "latch" && e.Kind != "barrier" {
				s.inside(e, step(e, c))
			}
		}
		o.Observer.Queued = then(asked, program.Queued)
		o.Observer.Failed = then(asked, program.Failed)
		o.Observer.Acquired = then(func(e session.Event) {
			c := caller()
			if !c.tries() {
				s.inside(e, step(e, c))
			}
			s.orders.taken(p, e, step(e, c))
		}, program.Acquired)
		o.Observer.Released = then(s.orders.left, program.Released)
		o.Observer.Lost = then(s.orders.left, program.Lost)
	})
}

// then calls one after the other.
func then(ours, theirs func(session.Event)) func(session.Event) {
	if theirs == nil {
		return ours
	}
	return func(e session.Event) {
		ours(e)
		theirs(e)
	}
}

// inside notes the order of a lock that was asked for with the context of an event, and fails the test when
// it contradicts others.
func (s *Server) inside(e session.Event, inner step) {
	if s.config.withoutRule || e.Context == nil {
		return
	}
	for _, h := range hold.HoldsOf(e.Context) {
		if report := s.orders.note(heldKey{h.Name(), h.Token()}, inner); report != "" {
			s.mu.Lock()
			if !s.over {
				s.t.Error(report)
			}
			s.mu.Unlock()
		}
	}
}

// note returns a report, or nothing.
func (o *orders) note(outer heldKey, inner step) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	holding, known := o.held[outer]
	if !known { // it has ended, or is of a client that is not the kit's
		return ""
	}
	return o.rules.note(holding.step, inner)
}

// taken notes a hold. Plain permits are none.
func (o *orders) taken(p *process, e session.Event, at step) {
	if e.Token == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := heldKey{e.Name, e.Token}
	o.held[key] = holding{at, p, o.held[key].count + 1}
}

// left notes that a hold has ended.
func (o *orders) left(e session.Event) { o.end(heldKey{e.Name, e.Token}) }

func (o *orders) end(key heldKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.held[key]; h.count > 1 {
		h.count--
		o.held[key] = h
	} else {
		delete(o.held, key)
	}
}

// forget forgets the holds of a process, which is dead.
func (o *orders) forget(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, h := range o.held {
		if h.of == p {
			delete(o.held, key)
		}
	}
}
