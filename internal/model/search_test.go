package model

import (
	"fmt"
	"slices"
)

// limit is how many states a search keeps: about 5 GB.
const limit = 15_000_000

// result is what a search found.
type result struct {
	states   int
	complete bool                   // all that can be reached were visited
	broken   map[property]violation // the first of each, which has the shortest trace
	taken    map[*step]bool         // the kinds of steps that there were
}

// event is one step of one subject.
type event struct {
	step    *step
	kind    string
	subject int8
}

func (e event) String() string {
	if e.kind == "" {
		return e.step.name
	}
	return fmt.Sprintf("%s%d %s", e.kind, e.subject, e.step.name)
}

// origin is how a state was reached first.
type origin struct {
	from  int32
	event event
}

type searcher struct {
	*config
	result
	known   map[state]struct{}
	origins []origin // of the known states, in the order in which they were found
	next    []state
}

// search visits all states that can be reached, nearest first. It stops early at a violation of until, if
// that is not empty.
func (c *config) search(until property) result {
	start := c.start()
	s := searcher{
		config:  c,
		result:  result{broken: map[property]violation{}, taken: map[*step]bool{}},
		known:   map[state]struct{}{start: {}},
		origins: []origin{{from: -1}},
	}
	level, first := []state{start}, 0
	for len(level) > 0 && len(s.origins) < limit {
		s.next = nil
		for n := range level {
			s.expand(&level[n], int32(first+n))
		}
		first += len(level)
		level = s.next
		if _, found := s.broken[until]; found {
			break
		}
	}
	s.states, s.complete = len(s.origins), len(level) == 0
	return s.result
}

// expand takes every step from a state.
func (s *searcher) expand(from *state, number int32) {
	w := world{state: *from, config: s.config}
	rest, quiet, idle := true, true, true // quiet: but for what ends holds; idle: but for what ends lingers
	try := func(steps []step, kind string, n, shown int) {
		for i := range steps {
			if steps[i].can(&w, n) {
				rest = rest && !steps[i].itself
				quiet = quiet && (!steps[i].itself || steps[i].ends())
				idle = idle && (!steps[i].itself || steps[i].lingers())
				s.take(w, event{&steps[i], kind, int8(shown)}, n, number)
			}
		}
	}
	for n := range s.processes {
		if w.clients[n].dead {
			try(deadSteps, "c", n, n)
		} else {
			try(clientSteps, "c", n, n)
			try(s.sharingSteps(), "c", n, n)
			try(s.lingerSteps(), "c", n, n)
		}
	}
	for n := range w.tenures {
		if w.tenures[n].phase == unused {
			continue
		}
		if !w.owned(id(n + 1)).dead {
			try(tenureSteps, "t", n, n+1)
			if s.rolls {
				try(rollSteps, "t", n, n+1)
			}
			try(s.readingSteps(), "t", n, n+1)
			try(s.tryingSteps(), "t", n, n+1)
		}
		try(straySteps, "t", n, n+1)
		try(s.leftSteps(), "t", n, n+1)
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
	s.report(&w, number, event{})
}

// take takes one step and remembers where it leads.
func (s *searcher) take(w world, e event, n int, number int32) {
	e.step.do(&w, n)
	w.tidy()
	s.taken[e.step] = true
	s.report(&w, number, e)
	if _, found := s.known[w.state]; found {
		return
	}
	s.known[w.state] = struct{}{}
	s.origins = append(s.origins, origin{number, e})
	s.next = append(s.next, w.state)
}

// report keeps the first violation of each property, with how its state was reached and by what last step, if
// any.
func (s *searcher) report(w *world, number int32, last event) {
	for _, v := range w.broken {
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

func (s *searcher) trace(number int32) (events []string) {
	for ; s.origins[number].from >= 0; number = s.origins[number].from {
		events = append(events, s.origins[number].event.String())
	}
	slices.Reverse(events)
	return events
}
