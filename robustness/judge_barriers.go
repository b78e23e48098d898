package robustness

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// barriers looks whether the parties of each generation went on together: nobody before all had come, each
// with an index of its own.
func (h *history) barriers(o Object) (violations []Violation) {
	if h.mayForgetTokens() { // a generation has its number from the clock
		return nil
	}
	generations := map[int64][]entry{}
	unknown := 0 // arrivals of which nobody knows
	for _, e := range h.of(Arrival, o.Index) {
		if e.Result == Done {
			generations[e.Token] = append(generations[e.Token], e)
		} else if e.Result != Refused {
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
				violations = append(violations, Violation{"barrier", fmt.Sprintf("generation %d has the index %d twice, or out of range", generation, p.Extra)})
			}
			indices[p.Extra] = true
		}
		if first.Begin < last.Asked {
			violations = append(violations, Violation{"barrier", "a party went on: " + first.describe(h.Began) + "\n  before another came: " + last.describe(h.Began)})
		}
		back := slices.MaxFunc(parties, func(a, b entry) int { return cmp.Compare(a.Begin, b.Begin) })
		if waited := time.Duration(back.Begin - max(last.Asked, h.recovered(back))); waited > h.bound() {
			violations = append(violations, Violation{"recovery", fmt.Sprintf("all were there for %v: %s", waited, back.describe(h.Began))})
		}
		if len(parties) < o.Capacity && unknown == 0 && !h.loses() {
			violations = append(violations, Violation{"barrier", fmt.Sprintf("%d parties of %d went on in generation %d, e.g. %s", len(parties), o.Capacity, generation, first.describe(h.Began))})
		}
	}
	return violations
}

// loses reports whether something happened in which counts get lost.
func (h *history) loses() bool {
	for _, w := range h.excusable {
		if w.Excuses.Counts {
			return true
		}
	}
	return false
}
