package model

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// explain is the failure message of a search.
func explain(r result) string {
	var b strings.Builder
	for p, v := range r.broken {
		fmt.Fprintf(&b, "%s: %s, after\n  %s\n", p, v.what, strings.Join(v.trace, "\n  "))
	}
	return b.String()
}

// verify searches a configuration to its end, in which nothing may be violated.
func verify(t *testing.T, c config) result {
	t.Helper()
	return searched(t, c.search)
}

// searched is verify for a configuration of any kind.
func searched(t *testing.T, search func(until property) result) result {
	t.Helper()
	began := time.Now()
	r := search("")
	t.Logf("%d states in %.1f s", r.states, time.Since(began).Seconds())
	require.True(t, r.complete || cut(), "not searched to its end")
	require.Empty(t, r.broken, explain(r))
	return r
}

// verifyAll verifies configurations, and returns the steps that there were in any of them.
func verifyAll[C any, P interface {
	*C
	search(until property) result
}](t *testing.T, configs []C, name func(P) string) map[fmt.Stringer]bool {
	t.Helper()
	taken := map[fmt.Stringer]bool{}
	var mu sync.Mutex
	t.Run("search", func(t *testing.T) { // ends with the last of them
		for i := range configs {
			c := P(&configs[i])
			t.Run(name(c), func(t *testing.T) {
				together(t)
				r := searched(t, c.search)
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(taken, r.taken)
			})
		}
	})
	return taken
}

// together has a test run beside others, unless they may need gigabytes.
func together(t *testing.T) {
	t.Helper()
	if os.Getenv("LATCHKEY_SOAK") == "" {
		t.Parallel()
	}
}

// small has as few hand-offs as there can be, and an offer after each.
func small(name string, allowed faults, calls ...int8) config {
	c := config{name: name, processes: len(calls), block: 1, budget: 0, alone: 1, allowed: allowed}
	copy(c.calls[:], calls)
	return c
}

// streaks has longer ones.
func streaks(name string, allowed faults, calls ...int8) config {
	c := small(name, allowed, calls...)
	c.block, c.budget, c.alone = 3, 1, 2
	return c
}

var configs = []config{
	small("nothing goes wrong", faults{}, 3, 3),
	small("three processes", faults{}, 2, 2, 1),
	streaks("streaks", faults{cancel: 1}, 3, 1),
	streaks("want is lost", faults{mute: 1}, 4, 2),
	small("copies astray", faults{lost: 1, stray: 1}, 2, 2),
	small("two copies astray", faults{stray: 2}, 2, 1),
	small("cancelled while a copy is astray", faults{stray: 1, cancel: 1}, 2, 1),
	small("cancelled twice", faults{cancel: 2}, 2, 2),
	small("cancelled while messages are lost", faults{kill: 1, cancel: 1}, 2, 2),
	small("cancelled, half open", faults{half: 1, cancel: 1, lost: 1}, 2, 1),
	small("leases end", faults{lapse: 1, expire: 1}, 2, 2),
	small("leases end while messages are lost", faults{expire: 1, kill: 1, cancel: 1}, 2, 1),
	small("forced", faults{force: 1, kill: 1}, 2, 1),
	small("forced twice", faults{force: 2}, 2, 1),
	small("crash", faults{crash: 1, half: 1, force: 1}, 2, 1),
	small("restart", faults{restart: 1, kill: 1}, 2, 1),
	small("three processes, messages lost", faults{kill: 1, half: 1}, 1, 1, 1),
	polling(small("one polls", faults{lost: 1, stray: 1, cancel: 1}, 2, 2), 1),
	polling(small("one polls while messages are lost", faults{kill: 1, half: 1, cancel: 1}, 2, 1), 1),
	polling(small("one polls while leases end", faults{crash: 1, lapse: 1, expire: 1}, 2, 2), 1),
	polling(small("one polls while another is forced", faults{force: 1, restart: 1}, 2, 1), 1),
	polling(small("one of three polls", faults{crash: 1}, 2, 1, 1), 2),
	calling(small("three processes, messages lost", faults{kill: 2}, 1, 1, 1)),
	calling(small("copies astray", faults{stray: 1, lost: 1, kill: 1}, 1, 1)),
	calling(small("cancelled", faults{kill: 2, cancel: 1}, 2, 1)),
	calling(small("restart", faults{restart: 1, kill: 1}, 2, 1)),
	calling(small("leases end", faults{expire: 1, force: 1, kill: 1}, 2, 1)),
	polling(polling(small("two of three poll", faults{stray: 1, crash: 1}, 1, 1, 1), 1), 2),
}

func TestProtocol(t *testing.T) {
	together(t)
	taken := verifyAll(t, append(configs, pairs()...), func(c *config) string { return c.name })
	// What never happens in any of them is not checked by them.
	for _, steps := range [][]step{clientSteps, deadSteps, tenureSteps, rollSteps, straySteps, redisSteps} {
		for i := range steps {
			require.True(t, taken[&steps[i]] || cut(), steps[i].name)
		}
	}
}

var faultNames = [kinds]string{"lost", "stray", "kill", "half", "crash", "cancel", "lapse", "expire", "force", "restart", "mute"}

// pairs are every two faults together. Only with LATCHKEY_SOAK: they take ten minutes, and 3 GB.
func pairs() (all []config) {
	if os.Getenv("LATCHKEY_SOAK") == "" {
		return nil
	}
	for a := range kinds {
		for b := a; b < kinds; b++ {
			var allowed faults
			allowed[a]++
			allowed[b]++
			second := int8(2)
			if allowed[restart] > 0 {
				second = 1
			}
			name := faultNames[a] + " and " + faultNames[b]
			all = append(all, small(name, allowed, 2, second), small(name+", three", allowed, 1, 1, 1), streaks(name+", streaks", allowed, 3, 1))
		}
	}
	return all
}

// TestUnpromptedOffersAreForLostMessages: without the timer nobody starves as long as no message is lost.
func TestUnpromptedOffersAreForLostMessages(t *testing.T) {
	together(t)
	c := streaks("", faults{}, 4, 2)
	c.bugs.noTimer = true
	verify(t, c)
}

// TestSeededBugs shows that the search sees what it is for.
// Rule 33.
func TestSeededBugs(t *testing.T) {
	together(t)
	type hidden struct {
		bugs     bugs
		config   config
		property property
	}
	for name, h := range map[string]hidden{
		"no grant loop":         {bugs{noGrantLoop: true}, small("", faults{crash: 1}, 1, 1), wake},
		"cancel overtakes":      {bugs{cancelOvertakes: true}, small("", faults{cancel: 1}, 1, 1), orphan},
		"no re-check":           {bugs{noConfirmRecheck: true}, small("", faults{kill: 1}, 1, 1), wake},
		"no later re-check":     {bugs{noPendingRecheck: true}, small("", faults{kill: 1}, 1, 1), wake},
		"publish count":         {bugs{publishCount: true}, small("", faults{expire: 1}, 1, 1), exclusion},
		"arrival trust":         {bugs{arrivalTrust: true}, small("", faults{expire: 1}, 1, 1), exclusion},
		"stray is ignored":      {bugs{strayIsIgnored: true}, small("", faults{stray: 1}, 1, 1), orphan},
		"same id":               {bugs{sameID: true}, small("", faults{stray: 1}, 2, 1), exclusion},
		"hold while offered":    {bugs{holdWhileOffered: true}, small("", faults{}, 2, 2), exclusion},
		"gone is owner":         {bugs{goneIsOwner: true}, small("", faults{lost: 1}, 2, 1), exclusion},
		"turn dropped":          {bugs{turnDropped: true}, small("", faults{cancel: 1}, 2, 1), deserted},
		"loss is passed on":     {bugs{lossIsPassedOn: true}, small("", faults{lapse: 1}, 2, 2), exclusion},
		"forced is passed on":   {bugs{lossIsPassedOn: true}, small("", faults{force: 1}, 2, 2), exclusion},
		"only fresh released":   {bugs{onlyFreshReleased: true}, small("", faults{stray: 1, cancel: 1}, 2, 1), orphan},
		"heir does not ask":     {bugs{heirDoesNotAsk: true}, small("", faults{cancel: 1}, 2, 1), orphan},
		"offer unsettled":       {bugs{offerUnsettled: true}, small("", faults{kill: 1, expire: 1}, 2, 1), orphan},
		"no timer, want lost":   {bugs{noTimer: true}, streaks("", faults{mute: 1}, 5, 1), hunger},
		"no timer, no want":     {bugs{noTimer: true, noWant: true}, streaks("", faults{}, 5, 1), hunger},
		"no timer, behind back": {bugs{noTimer: true, behindBack: true}, streaks("", faults{}, 2, 4), hunger},
		"not reserved":          {bugs{notReserved: true}, small("", faults{expire: 1}, 2, 1), rising},
		"forced is forgotten":   {bugs{forcedIsForgotten: true}, small("", faults{force: 1}, 1, 1), exclusion},
		"forced without token":  {bugs{forcedNoToken: true}, small("", faults{force: 1, kill: 1}, 1, 1), orphan},
		"grant twice ignored":   {bugs{grantTwiceIgnored: true}, small("", faults{force: 1, kill: 1}, 1, 1), orphan},
		"who polls overtakes":   {bugs{pollOvertakes: true}, polling(small("", faults{crash: 1}, 1, 1, 1), 2), overtaken},
		"lost is busy":          {bugs{lostIsBusy: true}, polling(small("", faults{lost: 1}, 1, 1), 1), orphan},
		"who polls overtaken":   {bugs{cancelOvertakes: true}, polling(small("", faults{cancel: 1}, 1, 1), 1), orphan},
		"who polls has a stray": {bugs{strayIsIgnored: true}, polling(small("", faults{stray: 1}, 1, 1), 1), orphan},
		"stray is called":       {bugs{strayIsCalled: true}, calling(small("", faults{stray: 1, kill: 2, restart: 1}, 1, 1)), staleEntry},
		"stale look":            {bugs{staleLook: true}, calling(small("", faults{kill: 2}, 1, 1)), wake},
		"look stays":            {bugs{lookStays: true}, calling(small("", faults{kill: 1, expire: 1}, 1, 1, 1)), staleEntry},
		"undated":               {bugs{undated: true}, small("", faults{crash: 1, force: 1}, 2, 2), staleEntry},
	} {
		t.Run(name, func(t *testing.T) {
			together(t)
			c := h.config
			c.bugs = h.bugs
			if c.bugs.publishCount {
				c.links[1] = replica
			}
			r := c.search(h.property)
			require.Contains(t, r.broken, h.property)
			v := r.broken[h.property]
			t.Logf("%d states. %s: %s, after\n  %s", r.states, v.property, v.what, strings.Join(v.trace, "\n  "))
		})
	}
}
