package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// recovery looks for waiters that waited for what nobody had. A lost wake-up shows here: without a fault, who
// waits must not have to ask again, which takes two seconds.
func (h *History) recovery(o plan.Object) (violations []plan.Violation) {
	if o.Family == plan.Red { // its waiters try again at random
		return nil
	}
	all := h.of(witness.Section, o.Index)
	// It is free from some moment on, when nobody has it then. What is not known to be given back stays for a
	// lease.
	type change struct {
		at   int64
		more int
	}
	var changes []change
	for _, e := range all {
		begin, end := e.Asked, e.Free
		switch {
		case e.Begin == 0 && e.Result == witness.Refused: // perhaps it was granted, and gave that back
		case end == 0 && e.killed != 0:
			end = e.killed + h.Plan.Lease().Nanoseconds()
		case end == 0:
			end = time.Now().UnixNano()
		case e.Result != witness.Done:
			end += h.Plan.Lease().Nanoseconds()
		}
		if e.Begin > 0 && e.Several == 0 {
			begin = e.Begin
		}
		if e.Begin == 0 && e.Result == witness.Refused && e.Several == 0 {
			begin = max(e.Asked, end-time.Millisecond.Nanoseconds())
		}
		end += plan.MinHold.Nanoseconds() // it may have a shortest time
		changes = append(changes, change{begin, 1}, change{end, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	waiting := slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return e.Begin == 0 || e.Extra != 0 || e.Several != 0 })
	slices.SortFunc(waiting, func(a, b entry) int { return cmp.Compare(a.Begin, b.Begin) })
	bound := h.Bound()
	inside, free, next := 0, int64(0), 0
	for _, e := range waiting {
		for next < len(changes) && changes[next].at < e.Begin {
			inside += changes[next].more
			if inside == 0 {
				free = changes[next].at
			}
			next++
		}
		if inside > 0 {
			continue
		}
		waited := time.Duration(e.Begin - max(free, e.Asked, h.recovered(e)))
		if waited > bound {
			violations = append(violations, plan.Violation{Kind: "recovery", Text: fmt.Sprintf("it was free for %v and somebody waited: %s", waited, e.describe(h.Began))})
		}
	}
	return violations
}

// recovered is when the last fault is over that excuses that it took so long, and what is granted to it.
func (h *History) recovered(e entry) (last int64) {
	for _, w := range h.Excusable {
		if (w.Object == -1 || w.Object == e.Object) && w.Begin <= e.Begin && w.Excuses.Recovers > 0 {
			last = max(last, w.End+w.Excuses.Recovers.Nanoseconds())
		}
	}
	return last
}
