package model

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// search visits what can happen to a semaphore: see explore.
func (c *permitConfig) search(until property) result { return explore(c.start(), until, c.expand) }

// expand takes every step from a state.
//
//go:norace
func (c *permitConfig) expand(s *searcher[permitState], from *permitState, number int32) {
	w := permitWorld{permitState: *from, permitConfig: c}
	quiet := true
	try := func(steps []permitStep, kind string, n, shown int) {
		for i := range steps {
			if steps[i].can(&w, n) {
				quiet = quiet && (!steps[i].itself || steps[i].name == givesBack)
				c.take(s, &w, &steps[i], event{&steps[i], kind, int8(shown)}, n, number)
			}
		}
	}
	for n := range c.processes {
		if w.clients[n].dead {
			try(permitDeadSteps, "c", n, n)
		} else {
			try(permitClientSteps, "c", n, n)
		}
	}
	for n := range w.requests {
		if w.requests[n].phase == unused {
			continue
		}
		if !w.owned(id(n + 1)).dead {
			try(requestSteps, "t", n, n+1)
		}
		try(strayRequestSteps, "t", n, n+1)
	}
	try(poolSteps, "", 0, 0)
	w.always()
	if quiet {
		w.whenQuiet()
	}
	s.report(w.broken, number, event{})
}

// take takes one step.
//
//go:norace
func (c *permitConfig) take(s *searcher[permitState], w *permitWorld, do *permitStep, e event, n int, number int32) {
	next := *w
	do.do(&next, n)
	next.tidy()
	s.taken[e.step] = true
	s.report(next.broken, number, e)
	s.reached(&next.permitState, e, number)
}

// permits has so many, and processes that want these.
func permits(name string, capacity int8, allowed faults, calls ...[]int8) permitConfig {
	c := permitConfig{name: name, processes: len(calls), capacity: capacity, allowed: allowed}
	copy(c.calls[:], calls)
	return c
}

// passing has what one is granted passed on inside its process.
func passing(c permitConfig, holds int8) permitConfig {
	c.holds = holds
	return c
}

// knowing lets permits be passed on so often while others wait.
func (c permitConfig) knowing(times int8) permitConfig {
	c.alone = times
	return c
}

func changing(c permitConfig, changes ...int8) permitConfig {
	c.changes = changes
	return c
}

func overtaking(c permitConfig) permitConfig {
	c.passes = true
	return c
}

func patient(c permitConfig) permitConfig {
	c.patient = true
	return c
}

var (
	one   = []int8{1}
	two   = []int8{2}
	ones  = []int8{1, 1}
	three = []int8{1, 1, 1}
	mixed = []int8{1, 2}
	large = []int8{2, 1}
)

var permitConfigs = []permitConfig{
	permits("nothing goes wrong", 2, faults{}, large, mixed),
	permits("three processes", 2, faults{}, mixed, two, one),
	permits("copies astray", 2, faults{lost: 1, stray: 1}, mixed, two),
	permits("two copies astray", 2, faults{stray: 2}, large, one),
	permits("cancelled while a copy is astray", 2, faults{stray: 1, cancel: 1}, two, mixed),
	permits("cancelled while messages are lost", 2, faults{kill: 1, cancel: 1}, large, two),
	permits("cancelled, half open", 2, faults{half: 1, cancel: 1}, mixed, two),
	permits("leases end", 2, faults{lapse: 1, expire: 1}, mixed, two),
	permits("leases end while messages are lost", 1, faults{expire: 1, kill: 1}, one, one),
	permits("crash", 2, faults{crash: 1, half: 1}, mixed, two),
	permits("crash of three", 3, faults{crash: 1}, two, []int8{3}, one),
	permits("deleted", 2, faults{force: 1}, mixed, two),
	permits("deleted while messages are lost", 2, faults{force: 1, kill: 1}, two, one),
	permits("deleted while a copy is astray", 2, faults{force: 1, stray: 1}, two, one),
	permits("restart", 2, faults{restart: 1, kill: 1}, two, one),
	changing(permits("fewer, and more", 2, faults{cancel: 1}, large, two), 1, 3),
	changing(permits("fewer while a copy is astray", 2, faults{stray: 1}, large, two), 1),
	changing(permits("fewer while one crashes", 2, faults{crash: 1}, large, two), 1),
	changing(permits("fewer, and one that comes to the front later", 3, faults{}, []int8{1, 3}, []int8{3}), 2),
	changing(patient(permits("fewer, and whoever wants more waits", 2, faults{}, large, two)), 1, 2),
	changing(overtaking(permits("who fits passes", 2, faults{crash: 1}, mixed, two)), 1),
	passing(permits("passed on", 1, faults{}, three, one), 2),
	passing(permits("passed on, two permits", 2, faults{}, []int8{1, 1, 2}, ones), 1),
	passing(permits("passed on while a want is lost", 1, faults{mute: 1}, three, one), 2).knowing(2),
	passing(permits("passed on, and cancelled", 1, faults{cancel: 2}, three, one), 1),
	passing(permits("passed on, and a copy is astray", 1, faults{stray: 1}, ones, one), 1),
	passing(permits("passed on while leases end", 1, faults{lapse: 1, expire: 1}, ones, one), 1),
	passing(permits("passed on while one crashes", 1, faults{crash: 1}, ones, one), 1),
	passing(permits("passed on, and deleted", 1, faults{force: 1}, ones, one), 1),
}

func TestPermitProtocol(t *testing.T) {
	together(t)
	taken := verifyAll(t, append(permitConfigs, permitPairs()...), func(c *permitConfig) string { return c.name })
	for _, steps := range [][]permitStep{permitClientSteps, permitDeadSteps, requestSteps, strayRequestSteps, poolSteps} {
		for i := range steps {
			require.True(t, taken[&steps[i]] || cut(), steps[i].name)
		}
	}
}

// permitPairs are every two faults together, with LATCHKEY_SOAK. A pair with a restart is without what is
// passed on.
func permitPairs() (all []permitConfig) {
	if os.Getenv("LATCHKEY_SOAK") == "" {
		return nil
	}
	for a := range kinds {
		for b := a; b < kinds; b++ {
			var allowed faults
			allowed[a]++
			allowed[b]++
			name := faultNames[a] + " and " + faultNames[b]
			all = append(all, permits(name, 2, allowed, two, one),
				changing(permits(name+", fewer", 2, allowed, two, one), 1))
			if allowed[restart] == 0 { // else there are many millions of states
				all = append(all, passing(permits(name+", passed on", 1, allowed, ones, one), 1).knowing(1))
			}
		}
	}
	return all
}

func TestSeededPermitBugs(t *testing.T) {
	together(t)
	for name, h := range map[string]struct {
		bugs     permitBugs
		config   permitConfig
		property property
	}{
		"takes twice":             {permitBugs{takesTwice: true}, permits("", 2, faults{stray: 1}, one, one), count},
		"first is not looked at":  {permitBugs{firstIsNotLookedAt: true}, changing(permits("", 2, faults{}, two, mixed), 1), told},
		"impossible holds up":     {permitBugs{impossibleHoldsUp: true}, changing(permits("", 2, faults{}, two, mixed), 1), told},
		"impossible is not told":  {permitBugs{impossibleIsNotTold: true}, changing(permits("", 2, faults{}, two, mixed), 1), dropped},
		"head is passed":          {permitBugs{headIsPassed: true}, permits("", 2, faults{}, ones, mixed), overtaken},
		"queue is ignored":        {permitBugs{queueIsIgnored: true}, permits("", 2, faults{}, ones, mixed), overtaken},
		"release serves nobody":   {permitBugs{releaseServesNobody: true}, permits("", 1, faults{}, one, one), wake},
		"tokens are not reserved": {permitBugs{tokensNotReserved: true}, passing(permits("", 1, faults{}, ones, one), 1), rising},
		"others are not told":     {permitBugs{othersAreNotTold: true}, passing(permits("", 1, faults{}, three, one), 2), hunger},
		"cancel overtakes":        {permitBugs{cancelOvertakes: true}, permits("", 1, faults{cancel: 1}, one, one), orphan},
		"stray is ignored":        {permitBugs{strayIsIgnored: true}, permits("", 1, faults{stray: 1}, one, one), orphan},
		"no re-check":             {permitBugs{noConfirmRecheck: true}, permits("", 1, faults{kill: 1}, one, one), orphan},
		"nobody polls":            {permitBugs{nobodyPolls: true}, permits("", 1, faults{crash: 1}, one, one), wake},
		"forced is forgotten":     {permitBugs{forcedForgotten: true}, permits("", 1, faults{force: 1}, one, one), surplus},
		"grant lets none in":      {permitBugs{grantLetsNoneIn: true}, passing(permits("", 1, faults{}, ones, one), 1), deserted},
		"turn dropped":            {permitBugs{turnDropped: true}, passing(permits("", 1, faults{cancel: 1}, ones, one), 1), deserted},
		"yields never":            {permitBugs{yieldsNever: true}, passing(permits("", 1, faults{}, three, one), 2), hunger},
		"refused is over":         {permitBugs{refusedIsOver: true}, changing(permits("", 2, faults{stray: 1}, two, one), 1, 2), orphan},
		"loss is passed on":       {permitBugs{lossIsPassedOn: true}, passing(permits("", 1, faults{lapse: 1}, three, one), 1), trust},
	} {
		t.Run(name, func(t *testing.T) {
			together(t)
			c := h.config
			c.bugs = h.bugs
			r := c.search(h.property)
			require.Contains(t, r.broken, h.property)
			v := r.broken[h.property]
			t.Logf("%d states. %s: %s, after\n  %s", r.states, v.property, v.what, strings.Join(v.trace, "\n  "))
		})
	}
}
