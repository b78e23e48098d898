package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// Tally is how much of what there was.
type Tally struct {
	Operations, Grants int
	Kinds              map[plan.Family]int // grants, or commands
	Killed             int                 // sections that their process did not end
	Lost               int                 // sections that ended without a release
	Unjudged           int                 // histories that were too long to be judged by a model
}

func (h *History) count() {
	h.Tally.Kinds = map[plan.Family]int{}
	for _, e := range h.entries {
		h.Tally.Operations++
		if e.Object < 0 || e.Begin == 0 {
			continue
		}
		family := h.Plan.Objects[e.Object].Family
		h.Tally.Kinds[family]++
		if e.Kind == witness.Section {
			h.Tally.Grants++
			if e.Free == 0 {
				h.Tally.Killed++
			}
			if e.Result == witness.Lost {
				h.Tally.Lost++
			}
		}
	}
}

// Add adds the tally of another episode.
func (t *Tally) Add(other Tally) {
	if t.Kinds == nil {
		t.Kinds = map[plan.Family]int{}
	}
	t.Operations += other.Operations
	t.Grants += other.Grants
	t.Killed += other.Killed
	t.Lost += other.Lost
	t.Unjudged += other.Unjudged
	for family, n := range other.Kinds {
		t.Kinds[family] += n
	}
}

// String is the tally in one line.
func (t Tally) String() string {
	var kinds []string
	for _, family := range slices.Sorted(maps.Keys(t.Kinds)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", family, t.Kinds[family]))
	}
	return fmt.Sprintf("%d operations, %d grants (%s), %d unfinished, %d lost, %d not judged", t.Operations, t.Grants,
		strings.Join(kinds, ", "), t.Killed, t.Lost, t.Unjudged)
}
