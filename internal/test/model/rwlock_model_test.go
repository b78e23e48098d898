package model

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// calls are those of one process.
type calls struct{ write, read, downgrade int8 }

// readWrite is a small configuration of a read-write lock.
func readWrite(name string, allowed faults, processes ...calls) config {
	writes := make([]int8, len(processes))
	for n, p := range processes {
		writes[n] = p.write
	}
	c := small(name, allowed, writes...)
	c.readWrite, c.batch = true, 3
	for n, p := range processes {
		c.reads[n], c.downgrades[n] = p.read, p.downgrade
	}
	return c
}

// budgeted has one that joins after it is known that others wait.
func budgeted(name string, allowed faults, processes ...calls) config {
	c := readWrite(name, allowed, processes...)
	c.budget = 1
	return c
}

// runs grants two readers by one script.
func runs(name string, allowed faults, processes ...calls) config {
	c := readWrite(name, allowed, processes...)
	c.batch = 2
	return c
}

// deaf processes open their inbox for those who wait.
func deaf(name string, allowed faults, processes ...calls) config {
	c := readWrite(name, allowed, processes...)
	c.lazy = true
	for n := range c.links {
		c.links[n] = down
	}
	return c
}

var sharingConfigs = []config{
	readWrite("nothing goes wrong", faults{}, calls{1, 1, 0}, calls{1, 1, 0}),
	readWrite("three processes", faults{}, calls{1, 1, 0}, calls{0, 1, 0}, calls{0, 1, 0}),
	runs("more readers than one script grants", faults{}, calls{1, 1, 0}, calls{0, 1, 0}, calls{0, 1, 0}),
	readWrite("downgrades astray", faults{lost: 1, stray: 1}, calls{1, 0, 1}, calls{0, 1, 0}),
	readWrite("downgrade given up", faults{cancel: 1}, calls{2, 0, 1}, calls{0, 1, 0}),
	readWrite("downgrade given up, astray", faults{cancel: 1, stray: 1}, calls{1, 0, 1}, calls{0, 1, 0}),
	readWrite("copies astray", faults{stray: 2}, calls{1, 0, 0}, calls{0, 1, 0}),
	readWrite("head cancelled", faults{cancel: 1}, calls{1, 0, 0}, calls{0, 1, 0}, calls{0, 1, 0}),
	readWrite("cancelled while a copy is astray", faults{stray: 1, cancel: 1}, calls{1, 0, 0}, calls{0, 2, 0}),
	readWrite("trust ends", faults{lapse: 1}, calls{1, 1, 0}, calls{0, 1, 0}),
	readWrite("trust ends after a downgrade", faults{lapse: 1}, calls{1, 0, 1}, calls{1, 1, 0}),
	readWrite("trust ends, cancelled", faults{lapse: 1, cancel: 1}, calls{1, 0, 0}, calls{1, 1, 0}),
	readWrite("leases end", faults{expire: 1}, calls{1, 1, 0}, calls{0, 1, 0}),
	readWrite("leases end before others", faults{expire: 1}, calls{1, 0, 1}, calls{0, 2, 0}),
	readWrite("crash", faults{crash: 1}, calls{1, 1, 0}, calls{0, 1, 0}),
	readWrite("crash among three", faults{crash: 1}, calls{1, 0, 0}, calls{0, 1, 0}, calls{0, 1, 0}),
	readWrite("host ends", faults{crash: 1, half: 1}, calls{1, 1, 0}, calls{1, 0, 0}),
	readWrite("forced", faults{force: 1}, calls{1, 1, 0}, calls{0, 1, 0}),
	readWrite("forced while messages are lost", faults{force: 1, kill: 1}, calls{1, 0, 0}, calls{0, 1, 0}),
	readWrite("restart", faults{restart: 1}, calls{0, 1, 0}, calls{1, 0, 0}),
	readWrite("messages lost, cancelled", faults{kill: 1, cancel: 1}, calls{1, 0, 0}, calls{0, 2, 0}),
	budgeted("want is lost", faults{mute: 1}, calls{1, 0, 0}, calls{0, 5, 0}),
	deaf("inboxes of those who wait", faults{}, calls{1, 0, 0}, calls{0, 3, 0}),
}

// sharingPairs are every two faults together, with larger configurations. Only with LATCHKEY_SOAK.
func sharingPairs() (all []config) {
	if os.Getenv("LATCHKEY_SOAK") == "" {
		return nil
	}
	all = append(all,
		readWrite("more of everything", faults{}, calls{1, 1, 1}, calls{1, 1, 1}),
		budgeted("want is lost with whoever wants", faults{mute: 1, crash: 1}, calls{1, 0, 0}, calls{0, 3, 0}, calls{1, 0, 0}))
	for a := range kinds {
		for b := a; b < kinds; b++ {
			var allowed faults
			allowed[a]++
			allowed[b]++
			name := faultNames[a] + " and " + faultNames[b]
			all = append(all,
				readWrite(name, allowed, calls{1, 1, 0}, calls{0, 1, 0}),
				readWrite(name+", downgrade", allowed, calls{1, 0, 1}, calls{1, 1, 0}),
				readWrite(name+", three", allowed, calls{1, 0, 0}, calls{0, 1, 0}, calls{0, 1, 0}))
		}
	}
	return all
}

// Rule 29.
func TestReadWriteProtocol(t *testing.T) {
	together(t)
	taken := verifyAll(t, append(sharingConfigs, sharingPairs()...), func(c *config) string { return c.name })
	for _, steps := range [][]step{sharingSteps, readingSteps, leftSteps} {
		for i := range steps {
			require.True(t, taken[&steps[i]] || cut(), steps[i].name)
		}
	}
}

// TestSeededReadWriteBugs shows that the search sees what it is for. The comment at each bug says where its
// line is in the scripts or in package grant.
// Rules 28, 29, 30, 31, 32.
func TestSeededReadWriteBugs(t *testing.T) {
	together(t)
	type hidden struct {
		bugs     readBugs
		config   config
		property property
	}
	writer, reader, both := calls{write: 1}, calls{read: 1}, calls{write: 1, read: 1}
	downgrades := calls{write: 1, downgrade: 1}
	for name, h := range map[string]hidden{
		"release deletes":       {readBugs{releaseDeletes: true}, readWrite("", faults{}, both, reader), trust},
		"prune is blind":        {readBugs{pruneIsBlind: true}, readWrite("", faults{}, writer, reader), exclusion},
		"prunes nobody":         {readBugs{pruneNobody: true}, readWrite("", faults{lapse: 1}, both, reader), wake},
		"downgrade once":        {readBugs{downgradeOnce: true}, readWrite("", faults{lost: 1}, downgrades, reader), orphan},
		"downgrade revives":     {readBugs{downgradeRevives: true}, readWrite("", faults{stray: 1}, downgrades, reader), orphan},
		"downgrade alone":       {readBugs{downgradeAlone: true}, readWrite("", faults{}, downgrades, reader), wake},
		"serve past":            {readBugs{servePast: true}, readWrite("", faults{cancel: 1}, both, both), overtaken},
		"join past":             {readBugs{joinPast: true}, readWrite("", faults{}, writer, reader, reader), overtaken},
		"cancel is silent":      {readBugs{cancelIsSilent: true}, readWrite("", faults{cancel: 1}, writer, reader, reader), wake},
		"dead head stays":       {readBugs{deadHeadStays: true}, readWrite("", faults{crash: 1}, writer, reader, reader), wake},
		"run ends":              {readBugs{runEnds: true}, runs("", faults{}, both, reader, reader), wake},
		"short is ignored":      {readBugs{shortIsIgnored: true}, readWrite("", faults{expire: 1}, both, calls{read: 2}), slow},
		"renewal revives":       {readBugs{renewalRevives: true}, readWrite("", faults{lapse: 1}, writer, reader), exclusion},
		"want once":             {readBugs{wantOnce: true}, budgeted("", faults{mute: 1}, writer, calls{read: 5}), hunger},
		"first token":           {readBugs{firstToken: true}, readWrite("", faults{}, calls{write: 3}, both), rising},
		"a weak hold is passed": {readBugs{weakIsPassedOn: true}, readWrite("", faults{cancel: 1}, calls{write: 2, downgrade: 1}, reader), trust},
		"join after want":       {readBugs{joinAfterWant: true}, budgeted("", faults{}, writer, calls{read: 5}), hunger},
		"deaf is joined":        {readBugs{deafIsJoined: true}, deaf("", faults{}, writer, calls{read: 5}), hunger},
	} {
		t.Run(name, func(t *testing.T) {
			together(t)
			c := h.config
			c.bugs.readBugs = h.bugs
			r := c.search(h.property)
			require.Contains(t, r.broken, h.property, "%d states, %v, %s", r.states, r.complete, explain(r))
			v := r.broken[h.property]
			t.Logf("%d states. %s: %s, after\n  %s", r.states, v.property, v.what, strings.Join(v.trace, "\n  "))
		})
	}
}
