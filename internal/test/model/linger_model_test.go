package model

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lingering has all processes keep the lock after Unlock. The further calls are of TryLock.
func lingering(c config, tries ...int8) config {
	for n := range c.processes {
		c.lingers[n] = true
	}
	copy(c.tries[:], tries)
	return c
}

// released has one that does not keep the lock.
func released(c config, n int) config {
	c.lingers[n] = false
	return c
}

// closing may shut down a process.
func closing(c config, n int) config {
	c.closes[n] = true
	return c
}

var lingerConfigs = []config{
	lingering(small("nothing goes wrong", faults{}, 3, 2)),
	lingering(small("three processes", faults{}, 2, 1, 1)),
	released(lingering(small("one of two lingers", faults{cancel: 1}, 2, 2)), 1),
	lingering(streaks("want is lost", faults{mute: 1}, 4, 1)),
	lingering(small("cancelled", faults{cancel: 1}, 3, 1)),
	lingering(small("copies astray", faults{stray: 1}, 3, 1)),
	lingering(small("answers lost", faults{lost: 1, cancel: 1}, 2, 1)),
	lingering(small("leases end", faults{lapse: 1, expire: 1}, 2, 1)),
	lingering(small("forced", faults{force: 1, kill: 1}, 2, 1)),
	lingering(small("crash", faults{crash: 1, half: 1}, 2, 1)),
	lingering(small("restart", faults{restart: 1}, 2, 1)),
	closing(lingering(small("shut down", faults{mute: 1}, 3, 1)), 0),
	lingering(small("somebody tries", faults{}, 2, 1), 0, 1),
	lingering(small("both try", faults{}, 2, 0), 1, 1),
	lingering(small("the process tries itself", faults{cancel: 1}, 2, 1), 1),
	lingering(small("the process tries itself, astray", faults{stray: 1}, 2, 0), 1),
	lingering(small("somebody tries among three", faults{}, 1, 1, 0), 0, 0, 1),
	lingering(small("somebody tries and messages are lost", faults{mute: 1, kill: 1}, 2, 0), 0, 1),
	lingering(small("somebody tries and copies are astray", faults{stray: 1, lost: 1}, 1, 0), 0, 1),
	lingering(small("somebody tries what is forced", faults{force: 1, crash: 1}, 1, 0), 0, 1),
	closing(lingering(small("somebody tries and another shuts down", faults{}, 2, 0), 0, 1), 0),
	polling(lingering(small("one polls", faults{crash: 1, lost: 1}, 3, 1)), 1),
}

// lingerPairs are every two faults together. Only with LATCHKEY_SOAK.
func lingerPairs() (all []config) {
	if os.Getenv("LATCHKEY_SOAK") == "" {
		return nil
	}
	all = append(all, lingering(small("more of both", faults{}, 2, 1), 1, 1), lingering(small("two of three try", faults{}, 1, 1, 0), 0, 1, 1))
	for a := range kinds {
		for b := a; b < kinds; b++ {
			var allowed faults
			allowed[a]++
			allowed[b]++
			name := faultNames[a] + " and " + faultNames[b]
			if allowed[stray]+allowed[restart] == 0 {
				all = append(all, lingering(small(name+", three", allowed, 1, 1, 1)))
			}
			own := int8(1)
			if allowed[restart] > 0 {
				own = 0
			}
			all = append(all,
				lingering(small(name, allowed, 2, 1)),
				lingering(small(name+", both try", allowed, 1, 0), own, 1),
				closing(lingering(small(name+", shut down", allowed, 2, 1)), 0))
		}
	}
	return all
}

func TestLingeringProtocol(t *testing.T) {
	together(t)
	taken := verifyAll(t, append(lingerConfigs, lingerPairs()...), func(c *config) string { return c.name })
	for _, steps := range [][]step{lingerSteps, tryingSteps} {
		for i := range steps {
			require.True(t, taken[&steps[i]] || cut(), steps[i].name)
		}
	}
}

// TestLingersEndForLostMessages: nobody waits for the end of a linger for ever as long as no message is lost.
func TestLingersEndForLostMessages(t *testing.T) {
	together(t)
	c := lingering(small("", faults{}, 3, 2))
	c.bugs.noLingerTimer = true
	verify(t, c)
}

// TestSeededLingerBugs shows that the search sees what it is for.
func TestSeededLingerBugs(t *testing.T) {
	together(t)
	type hidden struct {
		bugs     lingerBugs
		config   config
		property property
	}
	two := func(allowed faults) config { return lingering(small("", allowed, 2, 1)) }
	tries := func(allowed faults) config { return lingering(small("", allowed, 1, 0), 0, 1) }
	soon := func(allowed faults, calls int8) config { // is offered after each turn
		c := lingering(small("", allowed, calls, 1), 1, 0)
		c.alone = 0
		return c
	}
	for name, h := range map[string]hidden{
		"turn while released":        {lingerBugs{turnWhileReleased: true}, two(faults{}), exclusion},
		"want ends a turn":           {lingerBugs{wantEndsATurn: true}, lingering(streaks("", faults{}, 2, 1)), exclusion},
		"want ends nothing":          {lingerBugs{wantEndsNothing: true}, two(faults{}), delayed},
		"want is forgotten":          {lingerBugs{wantForgotten: true}, two(faults{}), delayed},
		"early want is forgotten":    {lingerBugs{earlyWant: true}, two(faults{}), delayed},
		"others are forgotten":       {lingerBugs{othersForgotten: true}, two(faults{}), delayed},
		"looks once":                 {lingerBugs{looksOnce: true}, two(faults{}), delayed},
		"looks once, shut down":      {lingerBugs{looksOnce: true}, closing(two(faults{}), 0), orphan},
		"shut down forgets":          {lingerBugs{closeForgets: true}, closing(two(faults{}), 0), orphan},
		"unmarked":                   {lingerBugs{unmarked: true}, two(faults{}), delayed},
		"forced goes on":             {lingerBugs{lossLeavesIt: true}, two(faults{force: 1}), exclusion},
		"lapsed goes on":             {lingerBugs{lossLeavesIt: true}, two(faults{lapse: 1}), exclusion},
		"no linger timer, want lost": {lingerBugs{noLingerTimer: true}, two(faults{mute: 1}), wake},
		"token again":                {lingerBugs{tokenAgain: true}, two(faults{}), rising},
		"uncounted":                  {lingerBugs{uncounted: true}, lingering(streaks("", faults{mute: 1}, 5, 1)), hunger},
		"answers early":              {lingerBugs{answersEarly: true}, tries(faults{}), spurned},
		"tried in vain":              {lingerBugs{wantEndsNothing: true}, tries(faults{}), spurned},
		"parks beside":               {lingerBugs{parksBeside: true}, lingering(small("", faults{}, 1, 0), 1, 0), orphan},
		"offer queues":               {lingerBugs{offerQueues: true}, soon(faults{kill: 1}, 1), orphan},
		"heir tries":                 {lingerBugs{heirTries: true}, soon(faults{cancel: 1}, 2), spurned},
		"unbounded":                  {lingerBugs{unbounded: true}, tries(faults{mute: 1}), wake},
		"queues at last":             {lingerBugs{queuesAtLast: true}, tries(faults{kill: 1}), orphan},
	} {
		t.Run(name, func(t *testing.T) {
			together(t)
			c := h.config
			c.bugs.lingerBugs = h.bugs
			r := c.search(h.property)
			require.Contains(t, r.broken, h.property, "%d states, %v, %s", r.states, r.complete, explain(r))
			v := r.broken[h.property]
			t.Logf("%d states. %s: %s, after\n  %s", r.states, v.property, v.what, strings.Join(v.trace, "\n  "))
		})
	}
}
