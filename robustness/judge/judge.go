// Package judge reads what the processes of an episode wrote down, and says what is wrong with it. It knows neither the
// traffic nor the faults: what a fault excuses comes with the episode.
package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// slack is what a busy machine may add to a bound. Stalls that the workers have seen come on top.
const slack = 1100 * time.Millisecond

// Bound is how long something may take that takes milliseconds, on a machine that is as busy as this one was.
func (h *History) Bound() time.Duration { return slack + 2*h.Stall }

// Judge returns what is wrong with the history.
func (h *History) Judge() (violations []plan.Violation) {
	h.count()
	for _, o := range h.Plan.Objects {
		var found []plan.Violation
		switch {
		case o.Exclusive():
			found = append(h.exclusion(o), h.recovery(o)...)
			found = append(found, h.unique(o)...)
		case o.Permits():
			found = append(h.permits(o), h.recovery(o)...)
			found = append(found, h.unique(o)...)
		case o.Family == plan.Counting || o.Family == plan.Latch:
			found = h.linear(o)
		case o.Family == plan.Barrier:
			found = h.barriers(o)
		case o.Runs():
			found = h.ran(o)
		}
		if o.Family == plan.Fenced {
			found = append(found, h.writes(o)...)
		}
		if o.Family == plan.Fair || o.Family == plan.Queued {
			found = append(found, h.order(o)...)
		}
		if o.Exclusive() && o.Family != plan.Red || o.Permits() {
			found = append(found, h.overtaken(o)...)
		}
		for n := range found {
			found[n].Text = o.Key + ": " + found[n].Text
		}
		violations = append(violations, found...)
	}
	return violations
}

// sections returns those of an object that were granted, in the order of their begins.
func (h *History) sections(o plan.Object) []entry { return begun(h.of(witness.Section, o.Index)) }

// begun returns those that were granted, in the order of their begins.
func begun(some []entry) []entry {
	some = slices.DeleteFunc(some, func(e entry) bool { return e.Begin == 0 })
	slices.SortFunc(some, func(a, b entry) int { return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.end, b.end)) })
	return some
}

// event is the begin or the end of a section.
type event struct {
	at   int64
	ends bool
	entry
}

// eventsOf returns them in the order of time. At one moment ends come first: the clock has no finer steps.
func eventsOf(sections []entry) []event {
	events := make([]event, 0, 2*len(sections))
	for _, s := range sections {
		events = append(events, event{s.Begin, false, s}, event{max(s.end, s.Begin+1), true, s})
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if a.at != b.at || a.ends == b.ends {
			return cmp.Compare(a.at, b.at)
		}
		if a.ends {
			return -1
		}
		return 1
	})
	return events
}

// exclusion looks for sections that were trusted beside a writer's, and for tokens that contradict the order
// of the sections.
func (h *History) exclusion(o plan.Object) []plan.Violation { return h.alone(h.sections(o)) }

// alone is exclusion for some sections.
func (h *History) alone(sections []entry) (violations []plan.Violation) {
	type latest struct {
		token int64
		entry
	}
	inside := map[*witness.Record]entry{}
	// The greatest tokens of those alone, and together.
	all := map[[2]int64]*[2]latest{}
	perClient := h.mayForgetTokens()
	for _, e := range eventsOf(sections) {
		var who [2]int64
		if perClient {
			who = [2]int64{int64(e.serial), e.Client}
		}
		ended := all[who]
		if ended == nil {
			ended = &[2]latest{{token: math.MinInt64}, {token: math.MinInt64}}
			all[who] = ended
		}
		if e.ends {
			delete(inside, e.Record)
			if e.Token > ended[e.Mode].token {
				ended[e.Mode] = latest{e.Token, e.entry}
			}
			continue
		}
		for _, other := range inside {
			if (e.Mode == witness.Alone || other.Mode == witness.Alone) && !h.excused(e.Object, e.at, overlap) {
				violations = append(violations, plan.Violation{Kind: "exclusion", Text: e.describe(h.Began) + "\n  beside " + other.describe(h.Began)})
			}
		}
		alone, together := ended[witness.Alone], ended[witness.Together]
		newest := max(alone.token, together.token)
		wrong := e.Token < alone.token || e.Mode == witness.Alone && (e.Token < newest || e.Token == newest && e.Extra == 0) // else it goes on with a hold
		if wrong && !h.excused(e.Object, e.at, overlap) {
			before := alone
			if together.token > before.token && e.Mode == witness.Alone {
				before = together
			}
			violations = append(violations, plan.Violation{Kind: "token order", Text: e.describe(h.Began) + "\n  after " + before.describe(h.Began)})
		}
		inside[e.Record] = e.entry
	}
	return violations
}

// mayForgetTokens reports whether Redis lost its data while its clock was set back. Then tokens grow for
// those clients alone that have seen the greatest.
func (h *History) mayForgetTokens() bool {
	lost, back := false, false
	for _, w := range h.Excusable {
		lost = lost || w.Name == "flush all" || w.Name == "restart empty"
		back = back || w.Name == "clock back"
	}
	return lost && back
}

// ahead is how far before the server's clock a client may have tokens in reserve.
const ahead = 5 * time.Millisecond

// mayBeReserved reports whether a token that two grants have may have been in reserve for one of them when
// Redis lost its data, and been granted to the other after that. One client never uses a token of a lock
// twice.
func (h *History) mayBeReserved(o plan.Object, a, b entry) bool {
	if a.serial == b.serial && a.Client == b.Client && o.Exclusive() {
		return false
	}
	granted := a.Token * int64(time.Microsecond)
	return slices.ContainsFunc(h.Excusable, func(w plan.Window) bool {
		return w.Name == "flush all" && w.Begin <= granted && granted <= w.End+ahead.Nanoseconds()
	})
}

// unique looks for a token that two grants have. Nothing else excuses that.
func (h *History) unique(o plan.Object) (violations []plan.Violation) {
	if h.mayForgetTokens() {
		return nil
	}
	seen := map[int64]entry{}
	for _, e := range h.sections(o) {
		if e.Mode == witness.Together || e.Extra != 0 {
			continue
		}
		if before, known := seen[e.Token]; known && !h.mayBeReserved(o, before, e) {
			violations = append(violations, plan.Violation{Kind: "token twice", Text: e.describe(h.Began) + "\n  as " + before.describe(h.Began)})
		}
		seen[e.Token] = e
	}
	return violations
}

// permits looks for moments at which more were trusted than there are, and for tokens out of order where all
// grants are Redis's.
func (h *History) permits(o plan.Object) (violations []plan.Violation) {
	most := int64(o.Capacity)
	for _, e := range h.of(witness.Setting, o.Index) {
		most = max(most, e.N)
	}
	inside := map[*witness.Record]entry{}
	total := int64(0)
	for _, e := range eventsOf(h.sections(o)) {
		if e.ends {
			delete(inside, e.Record)
			total -= e.N
			continue
		}
		inside[e.Record] = e.entry
		total += e.N
		if total > most && !h.excused(e.Object, e.at, overlap) {
			text := fmt.Sprintf("%d permits are trusted, and there are %d:", total, most)
			for _, other := range inside {
				text += "\n  " + other.describe(h.Began)
			}
			violations = append(violations, plan.Violation{Kind: "permits", Text: text})
		}
	}
	if o.Family != plan.Queued {
		return violations
	}
	greatest := entry{Record: &witness.Record{}}
	begun := h.sections(o)
	asked := slices.Clone(begun)
	slices.SortFunc(asked, func(a, b entry) int { return cmp.Compare(a.Asked, b.Asked) })
	for _, e := range asked { // of those that began before it was asked for, the greatest token
		for len(begun) > 0 && begun[0].Begin < e.Asked {
			if begun[0].Token > greatest.Token {
				greatest = begun[0]
			}
			begun = begun[1:]
		}
		if e.Extra == 0 && e.Token < greatest.Token && !h.excused(e.Object, e.Begin, overlap) {
			violations = append(violations, plan.Violation{Kind: "token order", Text: e.describe(h.Began) + "\n  after " + greatest.describe(h.Began)})
		}
	}
	return violations
}

// order looks for waiters that were overtaken by one that asked when they stood in the queue.
func (h *History) order(o plan.Object) (violations []plan.Violation) {
	sections := h.sections(o)
	slices.SortFunc(sections, func(a, b entry) int { return cmp.Compare(a.Token, b.Token) })
	// Of those that come later by their tokens, the one that stood in the queue first.
	first := entry{Record: &witness.Record{Queued: math.MaxInt64}}
	for _, e := range slices.Backward(sections) {
		if e.Extra != 0 || e.Mode == witness.Together {
			continue
		}
		if first.Queued < e.Asked && e.Queued >= 0 && !h.disordered(first, e) {
			violations = append(violations, plan.Violation{Kind: "order", Text: e.describe(h.Began) + "\n  overtook " + first.describe(h.Began)})
		}
		if e.Queued > 0 && e.Queued < first.Queued {
			first = e
		}
	}
	return violations
}

// overtaken looks for waiters that were passed by somebody who came long after them. A budget inside a
// process, or a phase, excuses milliseconds. A goroutine in the line of its client stands in the queue when it is
// the head of the line: each one before it there may have had a turn of its own. One with the smaller token was granted
// first, though it may be told a moment later.
func (h *History) overtaken(o plan.Object) (violations []plan.Violation) {
	sections := h.sections(o)
	latest := entry{Record: &witness.Record{}} // of those that were granted so far, the one that asked last
	for n, e := range sections {
		waits, since := e.Queued >= 0 && e.Several == 0 && e.Extra == 0 && (o.Family != plan.Leased || e.N == 1), e.Asked
		if o.Mixed() || o.Family == plan.Halves {
			since = h.atTheHead(e, sections[:n])
		}
		if by := time.Duration(latest.Asked - since); waits && by > h.Bound() && !h.toldLater(e, latest) && !h.disordered(e, latest) {
			violations = append(violations, plan.Violation{Kind: "overtaken", Text: fmt.Sprintf("%s\n  by one that asked %v later: %s", e.describe(h.Began), by, latest.describe(h.Began))})
		}
		if e.Asked > latest.Asked && e.Queued >= 0 && e.Extra == 0 {
			latest = e
		}
	}
	return violations
}

// toldLater reports whether the first one was granted before the other, and told a moment after it. Without a message it would
// be told when it asks by itself, after two seconds.
func (h *History) toldLater(first, other entry) bool {
	const moment = 100 * time.Millisecond
	return first.Token < other.Token && first.Begin-other.Begin < (moment+2*h.Stall).Nanoseconds()
}

// atTheHead is when a waiter was the head of its client's line at the latest. Others of the client asked before it, and
// were granted before it: the last one had ended its turn by then.
func (h *History) atTheHead(e entry, granted []entry) int64 {
	since := e.Asked
	for _, before := range granted {
		if before.serial == e.serial && before.Client == e.Client && before.Asked <= e.Asked+h.Stall.Nanoseconds() {
			since = max(since, before.Free)
		}
	}
	return since
}

// disordered reports whether something excuses that the order of two is not kept.
func (h *History) disordered(waits, passes entry) bool {
	for _, w := range h.Excusable {
		if w.Excuses.Order && (w.Object == -1 || w.Object == waits.Object) &&
			w.Begin <= max(waits.Begin, passes.Begin) && w.End+w.Excuses.Recovers.Nanoseconds() >= waits.Asked {
			return true
		}
	}
	return false
}
