package model

import (
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// limit is how many states a search keeps, and briefly how many one keeps that looks for nothing, in a first
// run of the tests: the nearest ones.
const limit, briefly = 15_000_000, 3_000

// cut reports that a search which looks for nothing does not go to its end.
var cut = redistest.Brief

// result is what a search found.
type result struct {
	states   int
	complete bool                   // all that can be reached were visited
	broken   map[property]violation // the first of each, which has the shortest trace
	taken    map[fmt.Stringer]bool  // the kinds of steps that there were
}

// event is one step of one subject.
type event struct {
	step    fmt.Stringer // a *step or *permitStep
	kind    string
	subject int8
}

func (e event) String() string {
	if e.kind == "" {
		return e.step.String()
	}
	return fmt.Sprintf("%s%d %s", e.kind, e.subject, e.step)
}

// origin is how a state was reached first.
type origin struct {
	from  int32
	event event
}

// searcher is a search among states of a kind. Of those that it knows it keeps a print of 128 bits, which no
// two of some million states share.
type searcher[S comparable] struct {
	result

	seeds   [2]maphash.Seed
	known   map[[2]uint64]struct{}
	origins []origin // of the known states, in the order in which they were found
	next    []S
}

// explore visits all states that can be reached from the start, nearest first. It stops early at a violation
// of until, if that is not empty. expand takes every step from a state, which has a number.
func explore[S comparable](start S, until property, expand func(s *searcher[S], from *S, number int32)) result {
	s := searcher[S]{
		result: result{broken: map[property]violation{}, taken: map[fmt.Stringer]bool{}},
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		known:  map[[2]uint64]struct{}{},
	}
	s.reached(&start, event{}, -1)
	most := limit
	if until == "" && cut() {
		most = briefly
	}
	for first := 0; len(s.next) > 0 && len(s.origins) < most; {
		level := s.next
		s.next = nil
		for n := range level {
			expand(&s, &level[n], int32(first+n))
		}
		first += len(level)
		if _, found := s.broken[until]; found {
			break
		}
	}
	s.states, s.complete = len(s.origins), len(s.next) == 0
	return s.result
}

// reached remembers where a step leads. A search is of one goroutine, and the race detector would take half
// of its time to look at the copies of states.
//
//go:norace
func (s *searcher[S]) reached(to *S, e event, number int32) {
	mark := [2]uint64{maphash.Comparable(s.seeds[0], *to), maphash.Comparable(s.seeds[1], *to)}
	if _, found := s.known[mark]; found {
		return
	}
	s.known[mark] = struct{}{}
	s.origins = append(s.origins, origin{number, e})
	s.next = append(s.next, *to)
}

// report keeps the first violation of each property, with how its state was reached and by what last step, if
// any.
func (s *searcher[S]) report(broken []violation, number int32, last event) {
	for _, v := range broken {
		if _, found := s.broken[v.property]; found {
			continue
		}
		v.trace = s.trace(number)
		if last.step != nil {
			v.trace = append(v.trace, last.String())
		}
		s.broken[v.property] = v
	}
}

func (s *searcher[S]) trace(number int32) (events []string) {
	for ; s.origins[number].from >= 0; number = s.origins[number].from {
		events = append(events, s.origins[number].event.String())
	}
	slices.Reverse(events)
	return events
}

// search visits what can happen to a lock: see explore.
func (c *config) search(until property) result { return explore(c.start(), until, c.expand) }

// expand takes every step from a state.
//
//go:norace
func (c *config) expand(s *searcher[state], from *state, number int32) {
	w := world{state: *from, config: c}
	rest, quiet, idle := true, true, true // quiet: but for what ends holds; idle: but for what ends lingers
	try := func(steps []step, kind string, n, shown int) {
		for i := range steps {
			if steps[i].can(&w, n) {
				rest = rest && !steps[i].itself
				quiet = quiet && (!steps[i].itself || steps[i].ends())
				idle = idle && (!steps[i].itself || steps[i].lingers())
				c.take(s, &w, &steps[i], event{&steps[i], kind, int8(shown)}, n, number)
			}
		}
	}
	for n := range c.processes {
		if w.clients[n].dead {
			try(deadSteps, "c", n, n)
		} else {
			try(clientSteps, "c", n, n)
			try(c.sharingSteps(), "c", n, n)
			try(c.lingerSteps(), "c", n, n)
		}
	}
	for n := range w.tenures {
		if w.tenures[n].phase == unused {
			continue
		}
		if !w.owned(id(n + 1)).dead {
			try(tenureSteps, "t", n, n+1)
			if c.rolls {
				try(rollSteps, "t", n, n+1)
			}
			try(c.readingSteps(), "t", n, n+1)
			try(c.tryingSteps(), "t", n, n+1)
		}
		try(straySteps, "t", n, n+1)
		try(c.leftSteps(), "t", n, n+1)
	}
	try(redisSteps, "", 0, 0)
	w.always()
	if rest {
		w.atRest()
	}
	if quiet {
		w.whenQuiet()
	}
	if idle {
		w.whenIdle()
	}
	s.report(w.broken, number, event{})
}

// take takes one step.
//
//go:norace
func (c *config) take(s *searcher[state], w *world, do *step, e event, n int, number int32) {
	next := *w
	do.do(&next, n)
	next.tidy()
	s.taken[e.step] = true
	s.report(next.broken, number, e)
	s.reached(&next.state, e, number)
}
