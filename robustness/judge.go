package robustness

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// slack is what a busy machine may add to a bound. Stalls that the workers have seen come on top.
const slack = 1100 * time.Millisecond

// bound is how long something may take that takes milliseconds, on a machine that is as busy as this one was.
func (h *history) bound() time.Duration { return slack + 2*h.Stall }

// judge returns what is wrong with the history.
func (h *history) judge() (violations []Violation) {
	h.count()
	for _, o := range h.Plan.Objects {
		var found []Violation
		switch {
		case o.Exclusive():
			found = append(h.exclusion(o), h.recovery(o)...)
			found = append(found, h.unique(o)...)
		case o.Permits():
			found = append(h.permits(o), h.recovery(o)...)
			found = append(found, h.unique(o)...)
		case o.Family == Counting || o.Family == Latch:
			found = h.linear(o)
		case o.Family == Barrier:
			found = h.barriers(o)
		case o.Runs():
			found = h.ran(o)
		}
		if o.Family == Fenced {
			found = append(found, h.writes(o)...)
		}
		if o.Family == Fair || o.Family == Queued {
			found = append(found, h.order(o)...)
		}
		if o.Exclusive() && o.Family != Red || o.Permits() {
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
func (h *history) sections(o Object) []entry { return begun(h.of(Section, o.Index)) }

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
func (h *history) exclusion(o Object) []Violation { return h.alone(h.sections(o)) }

// alone is exclusion for some sections.
func (h *history) alone(sections []entry) (violations []Violation) {
	type latest struct {
		token int64
		entry
	}
	inside := map[*Record]entry{}
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
			if (e.Mode == Alone || other.Mode == Alone) && !h.excused(e.Object, e.at, overlap) {
				violations = append(violations, Violation{"exclusion", e.describe(h.Began) + "\n  beside " + other.describe(h.Began)})
			}
		}
		alone, together := ended[Alone], ended[Together]
		newest := max(alone.token, together.token)
		wrong := e.Token < alone.token || e.Mode == Alone && (e.Token < newest || e.Token == newest && e.Extra == 0) // else it goes on with a hold
		if wrong && !h.excused(e.Object, e.at, overlap) {
			before := alone
			if together.token > before.token && e.Mode == Alone {
				before = together
			}
			violations = append(violations, Violation{"token order", e.describe(h.Began) + "\n  after " + before.describe(h.Began)})
		}
		inside[e.Record] = e.entry
	}
	return violations
}

// mayForgetTokens reports whether Redis lost its data while its clock was set back. Then tokens grow for
// those clients alone that have seen the greatest.
func (h *history) mayForgetTokens() bool {
	lost, back := false, false
	for _, w := range h.excusable {
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
func (h *history) mayBeReserved(o Object, a, b entry) bool {
	if a.serial == b.serial && a.Client == b.Client && o.Exclusive() {
		return false
	}
	granted := a.Token * int64(time.Microsecond)
	return slices.ContainsFunc(h.excusable, func(w Window) bool {
		return w.Name == "flush all" && w.Begin <= granted && granted <= w.End+ahead.Nanoseconds()
	})
}

// unique looks for a token that two grants have. Nothing else excuses that.
func (h *history) unique(o Object) (violations []Violation) {
	if h.mayForgetTokens() {
		return nil
	}
	seen := map[int64]entry{}
	for _, e := range h.sections(o) {
		if e.Mode == Together || e.Extra != 0 {
			continue
		}
		if before, known := seen[e.Token]; known && !h.mayBeReserved(o, before, e) {
			violations = append(violations, Violation{"token twice", e.describe(h.Began) + "\n  as " + before.describe(h.Began)})
		}
		seen[e.Token] = e
	}
	return violations
}

// permits looks for moments at which more were trusted than there are, and for tokens out of order where all
// grants are Redis's.
func (h *history) permits(o Object) (violations []Violation) {
	most := int64(o.Capacity)
	for _, e := range h.of(Setting, o.Index) {
		most = max(most, e.N)
	}
	inside := map[*Record]entry{}
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
			violations = append(violations, Violation{"permits", text})
		}
	}
	if o.Family != Queued {
		return violations
	}
	greatest := entry{Record: &Record{}}
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
			violations = append(violations, Violation{"token order", e.describe(h.Began) + "\n  after " + greatest.describe(h.Began)})
		}
	}
	return violations
}

// order looks for waiters that were overtaken by one that asked when they stood in the queue.
func (h *history) order(o Object) (violations []Violation) {
	sections := h.sections(o)
	slices.SortFunc(sections, func(a, b entry) int { return cmp.Compare(a.Token, b.Token) })
	// Of those that come later by their tokens, the one that stood in the queue first.
	first := entry{Record: &Record{Queued: math.MaxInt64}}
	for _, e := range slices.Backward(sections) {
		if e.Extra != 0 || e.Mode == Together {
			continue
		}
		if first.Queued < e.Asked && e.Queued >= 0 && !h.disordered(first, e) {
			violations = append(violations, Violation{"order", e.describe(h.Began) + "\n  overtook " + first.describe(h.Began)})
		}
		if e.Queued > 0 && e.Queued < first.Queued {
			first = e
		}
	}
	return violations
}

// overtaken looks for waiters that were passed by somebody who came long after them. A budget inside a
// process, or a phase, excuses milliseconds. A goroutine in the line of its client stands in the queue when it is
// the head of the line: each one before it there may have had a turn of its own.
func (h *history) overtaken(o Object) (violations []Violation) {
	sections := h.sections(o)
	latest := entry{Record: &Record{}} // of those that were granted so far, the one that asked last
	for n, e := range sections {
		waits, since := e.Queued >= 0 && e.Several == 0 && e.Extra == 0 && (o.Family != Leased || e.N == 1), e.Asked
		if o.Mixed() || o.Family == Halves {
			since = h.atTheHead(e, sections[:n])
		}
		if by := time.Duration(latest.Asked - since); waits && by > h.bound() && !h.disordered(e, latest) {
			violations = append(violations, Violation{"overtaken", fmt.Sprintf("%s\n  by one that asked %v later: %s", e.describe(h.Began), by, latest.describe(h.Began))})
		}
		if e.Asked > latest.Asked && e.Queued >= 0 && e.Extra == 0 {
			latest = e
		}
	}
	return violations
}

// atTheHead is when a waiter was the head of its client's line at the latest. Others of the client asked before it, and
// were granted before it: the last one had ended its turn by then.
func (h *history) atTheHead(e entry, granted []entry) int64 {
	since := e.Asked
	for _, before := range granted {
		if before.serial == e.serial && before.Client == e.Client && before.Asked <= e.Asked+h.Stall.Nanoseconds() {
			since = max(since, before.Free)
		}
	}
	return since
}

// disordered reports whether something excuses that the order of two is not kept.
func (h *history) disordered(waits, passes entry) bool {
	for _, w := range h.excusable {
		if w.Excuses.Order && (w.Object == -1 || w.Object == waits.Object) &&
			w.Begin <= max(waits.Begin, passes.Begin) && w.End+w.Excuses.Recovers.Nanoseconds() >= waits.Asked {
			return true
		}
	}
	return false
}
