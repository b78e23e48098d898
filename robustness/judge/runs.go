package judge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/latchkey-go/latchkey/once"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// ran judges the runs of functions, and the calls that wanted them: trusted runs exclude each other, and
// tokens grow.
func (h *History) ran(o plan.Object) (violations []plan.Violation) {
	names := map[int64][]entry{}
	for _, e := range h.of(witness.Run, o.Index) {
		name := e.N
		if o.Family == plan.Ticks { // all ticks of a job exclude each other
			name = 0
		}
		names[name] = append(names[name], e)
	}
	for _, call := range h.of(witness.Call, o.Index) {
		names[call.N] = append(names[call.N], nil...) // perhaps nobody has run
	}
	for name, runs := range names {
		violations = append(violations, h.alone(begun(slices.Clone(runs)))...)
		slices.SortFunc(runs, func(a, b entry) int { return cmp.Compare(a.Token, b.Token) })
		violations = append(violations, h.grow(o, runs)...)
		if o.Family == plan.Onces {
			violations = append(violations, h.doneOnce(o, name, runs)...)
		}
	}
	switch o.Family {
	case plan.Shared:
		violations = append(violations, h.shared(o, names[0])...)
	case plan.Ticks:
		violations = append(violations, h.ticked(o, names[0])...)
	}
	return violations
}

// grow looks for a token that two runs have, and for numbers of attempts that do not grow with the tokens.
func (h *History) grow(o plan.Object, runs []entry) (violations []plan.Violation) {
	if h.Loses() {
		return nil
	}
	for n := 1; n < len(runs); n++ {
		before, e := runs[n-1], runs[n]
		var what string
		switch {
		case e.Token == before.Token:
			what = "token twice"
		case o.Family == plan.Ticks && e.N < before.N:
			what = "tick order"
		case (o.Family == plan.Onces || o.Family == plan.Ticks && e.N == before.N) && e.Extra <= before.Extra:
			what = "attempts"
		case o.Family == plan.Onces && e.Extra > plan.Attempts:
			what = "attempts"
		default:
			continue
		}
		violations = append(violations, plan.Violation{Kind: what, Text: e.describe(h.Began) + "\n  after " + before.describe(h.Began)})
	}
	return violations
}

// doneOnce judges what was done under one name: by one run, and by no other after that.
func (h *History) doneOnce(o plan.Object, name int64, runs []entry) (violations []plan.Violation) {
	var by *entry
	for _, call := range h.of(witness.Call, o.Index) {
		if call.N != name || call.Result != witness.Done {
			continue
		}
		done := func(e entry) bool { return e.Leaving != 0 && e.Leaving < call.Begin }
		if !slices.ContainsFunc(runs, done) {
			violations = append(violations, plan.Violation{Kind: "once", Text: "done by nobody: " + call.describe(h.Began)})
		}
		if h.Loses() {
			continue
		}
		if call.Extra == 1 || call.Mode == witness.ReadResult {
			if by != nil && by.Token != call.Token {
				violations = append(violations, plan.Violation{Kind: "once", Text: "done twice: " + call.describe(h.Began) + "\n  and " + by.describe(h.Began)})
			}
			by = &call
		}
		for _, e := range runs {
			if e.Begin > call.Begin {
				violations = append(violations, plan.Violation{Kind: "once", Text: "it runs: " + e.describe(h.Began) + "\n  after it was done: " + call.describe(h.Began)})
			}
		}
	}
	return violations
}

// shared judges what callers of Share got: what a run gave, whose own call had not returned when they came.
func (h *History) shared(o plan.Object, runs []entry) (violations []plan.Violation) {
	known, returned := map[int64]bool{}, map[int64]entry{}
	for _, e := range runs {
		known[e.Token] = true
	}
	calls := h.of(witness.Call, o.Index)
	for _, call := range calls {
		if call.Result == witness.Done && call.Extra == 1 {
			returned[call.Token] = call
		}
	}
	for _, call := range calls {
		if call.Result != witness.Done || h.Loses() {
			continue
		}
		by, over := returned[call.Token]
		switch {
		case !known[call.Token]:
			violations = append(violations, plan.Violation{Kind: "share", Text: "of nobody: " + call.describe(h.Began)})
		case over && by.Begin < call.Asked:
			violations = append(violations, plan.Violation{Kind: "share", Text: call.describe(h.Began) + "\n  got what was over: " + by.describe(h.Began)})
		}
	}
	return violations
}

// ticked judges the ticks of a job where nothing failed: each is run once, and of all that are to be run none
// is left out.
func (h *History) ticked(o plan.Object, runs []entry) (violations []plan.Violation) {
	if !h.Plan.Calm() {
		return nil
	}
	for n := 1; n < len(runs); n++ {
		before, e := runs[n-1], runs[n]
		switch {
		case e.N == before.N && before.Result == witness.Done:
			violations = append(violations, plan.Violation{Kind: "tick twice", Text: e.describe(h.Began) + "\n  and " + before.describe(h.Began)})
		case o.Capacity == int(once.RunAll) && e.N > before.N+plan.Period.Milliseconds():
			violations = append(violations, plan.Violation{Kind: "tick", Text: "some are left out: " + e.describe(h.Began) + "\n  follows " + before.describe(h.Began)})
		}
	}
	return violations
}

// writes looks for writes that were done with a smaller token than one before, and for what was overwritten
// by such a one.
func (h *History) writes(o plan.Object) (violations []plan.Violation) {
	if h.Loses() {
		return nil
	}
	accepted := slices.DeleteFunc(h.of(witness.Write, o.Index), func(e entry) bool { return e.Result != witness.Done })
	byEnd := slices.Clone(accepted)
	slices.SortFunc(byEnd, func(a, b entry) int { return cmp.Compare(a.Begin, b.Begin) })
	var greatest *entry
	for _, e := range accepted { // in the order in which they were asked for
		for len(byEnd) > 0 && byEnd[0].Begin < e.Asked {
			if greatest == nil || byEnd[0].Token > greatest.Token {
				greatest = &byEnd[0]
			}
			byEnd = byEnd[1:]
		}
		switch {
		case greatest == nil:
		case e.Mode == 1 && (e.Extra < greatest.Token || e.Extra > e.Token):
			violations = append(violations, plan.Violation{Kind: "fence", Text: fmt.Sprintf("it reads %d: %s\n  after %s", e.Extra, e.describe(h.Began), greatest.describe(h.Began))})
		case e.Token < greatest.Token:
			violations = append(violations, plan.Violation{Kind: "fence", Text: fmt.Sprintf("written: %s\n  after %s", e.describe(h.Began), greatest.describe(h.Began))})
		}
	}
	return violations
}
