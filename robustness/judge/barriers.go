package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// barriers looks whether the parties of each generation went on together: nobody before all had come, each
// with an index of its own.
func (h *History) barriers(o plan.Object) (violations []plan.Violation) {
	if h.mayForgetTokens() { // a generation has its number from the clock
		return nil
	}
	generations := map[int64][]entry{}
	unknown := 0 // arrivals of which nobody knows
	for _, e := range h.of(witness.Arrival, o.Index) {
		if e.Result == witness.Done {
			generations[e.Token] = append(generations[e.Token], e)
		} else if e.Result != witness.Refused {
			unknown++
		}
	}
	for generation, parties := range generations {
		first, last := parties[0], parties[0] // who returned first, and who came last
		indices := map[int64]bool{}
		for _, p := range parties {
			if p.Begin < first.Begin {
				first = p
			}
			if p.Asked > last.Asked {
				last = p
			}
			if indices[p.Extra] || p.Extra < 0 || p.Extra >= p.N {
				violations = append(violations, plan.Violation{Kind: "barrier", Text: fmt.Sprintf("generation %d has the index %d twice, or out of range", generation, p.Extra)})
			}
			indices[p.Extra] = true
		}
		if first.Begin < last.Asked {
			violations = append(violations, plan.Violation{Kind: "barrier", Text: "a party went on: " + first.describe(h.Began) + "\n  before another came: " + last.describe(h.Began)})
		}
		back := slices.MaxFunc(parties, func(a, b entry) int { return cmp.Compare(a.Begin, b.Begin) })
		if waited := time.Duration(back.Begin - max(last.Asked, h.recovered(back))); waited > h.Bound() {
			violations = append(violations, plan.Violation{Kind: "recovery", Text: fmt.Sprintf("all were there for %v: %s", waited, back.describe(h.Began))})
		}
		if len(parties) < o.Capacity && unknown == 0 && !h.Loses() {
			violations = append(violations, plan.Violation{Kind: "barrier", Text: fmt.Sprintf("%d parties of %d went on in generation %d, e.g. %s", len(parties), o.Capacity, generation, first.describe(h.Began))})
		}
	}
	return violations
}

// Loses reports whether something happened in which counts get lost.
func (h *History) Loses() bool {
	for _, w := range h.Excusable {
		if w.Excuses.Counts {
			return true
		}
	}
	return false
}
