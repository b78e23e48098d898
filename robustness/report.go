package robustness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/robustness/judge"
	"github.com/latchkey-go/latchkey/robustness/plan"
)

// Total is what the episodes of a topology have come to.
type Total struct {
	Episodes, Violations int
	Took                 time.Duration
	judge.Tally
}

// Totals is that of each topology.
type Totals map[plan.Topology]*Total

// Add adds an episode.
func (t Totals) Add(o Outcome) {
	if t[o.Plan.Topology] == nil {
		t[o.Plan.Topology] = &Total{}
	}
	one := t[o.Plan.Topology]
	one.Episodes++
	one.Violations += len(o.Violations)
	one.Took += o.Took
	one.Add(o.Tally)
}

// String is a line for each topology, and one for all of them.
func (t Totals) String() string {
	var all Total
	text := ""
	line := func(name string, one *Total) {
		text += fmt.Sprintf("%s: %d episodes in %v, %d violations, %.0f grants/s, %v\n", name, one.Episodes, one.Took.Round(100*time.Millisecond),
			one.Violations, float64(one.Grants)/one.Took.Seconds(), one.Tally)
	}
	for _, topology := range slices.Sorted(maps.Keys(t)) {
		one := t[topology]
		line(string(topology), one)
		all.Episodes += one.Episodes
		all.Violations += one.Violations
		all.Took += one.Took
		all.Add(one.Tally)
	}
	line("all", &all)
	return strings.TrimSpace(text)
}

// String is the episode in one line, and its violations in one each.
func (o Outcome) String() string {
	faults := map[string]int{}
	for _, w := range o.Windows {
		faults[w.Name]++
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		names = append(names, fmt.Sprintf("%s %dx", name, faults[name]))
	}
	if o.Plan.Closes {
		names = append(names, "clients closed")
	}
	text := fmt.Sprintf("episode %d: %s, %d workers, %v, stall %v, faults: %s\n  %v", o.Plan.Episode, o.Plan.Topology, o.Plan.Workers,
		o.Took.Round(100*time.Millisecond), o.Stall.Round(time.Millisecond), strings.Join(names, ", "), o.Tally)
	const most = 8
	for n, v := range o.Violations {
		if n == most {
			text += fmt.Sprintf("\n  and %d more", len(o.Violations)-most)
			break
		}
		text += fmt.Sprintf("\n  VIOLATION %s: %s", v.Kind, v.Text)
	}
	return text
}
