package robustness

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// input is a command of plain permits or of a latch, and output what came of it. unknown: it may have taken
// effect, and may still.
type input struct{ mode, n int64 }

type output struct {
	result, value, extra int64
}

// judging is how long porcupine may look at one history. The longest part of it that can be judged is.
const judging = 2 * time.Second

// linear looks whether the commands of an object can have taken effect one after the other.
func (h *history) linear(o Object) []Violation {
	if h.loses() {
		return nil
	}
	var operations []porcupine.Operation
	unknown := 0
	for n, e := range h.of(Command, o.Index) {
		op := porcupine.Operation{ClientId: n, Input: input{e.Mode, e.N}, Call: e.Asked, Return: e.Begin, Output: output{e.Result, e.Token, e.Extra}}
		if e.Result != Done && e.Result != Refused {
			op.Return, op.Output = math.MaxInt64, output{result: Unknown}
			unknown++
		}
		operations = append(operations, op)
	}
	if len(operations) == 0 {
		return nil
	}
	if o.Family == Counting {
		if more := h.overdrawn(o); !o.Changes && (more != nil || o.Busy) { // a model takes too long for what is busy
			return more
		}
	}
	if o.Family == Latch {
		if late := h.late(o); late != nil {
			return late
		}
		if o.Timed {
			return nil
		}
	}
	if unknown > 12 { // each doubles what there is to look at
		h.tally.Unjudged++
		return nil
	}
	model := latchModel().ToModel()
	if o.Family == Counting {
		model = countingModel(o, o.Exact && h.Plan.Calm()).ToModel()
	}
	result, info := porcupine.CheckOperationsVerbose(model, operations, judging)
	switch result {
	case porcupine.Unknown:
		h.tally.Unjudged++
	case porcupine.Illegal:
		path := filepath.Join(h.Dir, fmt.Sprintf("%d.html", o.Index))
		_ = porcupine.VisualizePath(model, info, path) // for people
		return []Violation{{"linearizability", fmt.Sprintf("%d commands of which %d got no answer have no order: %s", len(operations), unknown, path)}}
	}
	return nil
}

// overdrawn looks for moments at which more plain permits were taken for sure than there are. All that may
// have been given back by then count as given back.
func (h *history) overdrawn(o Object) (violations []Violation) {
	type change struct {
		at   int64
		more int64
		entry
	}
	var changes []change
	for _, e := range h.of(Command, o.Index) {
		switch {
		case (e.Mode == take || e.Mode == drain) && e.Result == Done:
			changes = append(changes, change{e.Begin, e.N, e})
		case e.Mode == put && e.Result != Refused:
			changes = append(changes, change{e.Asked, -e.N, e})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.more, b.more)) })
	taken := int64(0)
	for _, c := range changes {
		if taken += c.more; c.more > 0 && taken > int64(o.Capacity) {
			text := fmt.Sprintf("%d plain permits are taken, and there are %d: %s", taken, o.Capacity, c.describe(h.Began))
			violations = append(violations, Violation{"plain permits", text})
		}
	}
	return violations
}

// late looks for those who learned too late that a latch had opened. Who waits for one to be set may see none
// of a generation that is soon deleted.
func (h *history) late(o Object) (violations []Violation) {
	commands := h.of(Command, o.Index)
	for _, opens := range commands {
		if opens.Mode != down && opens.Mode != downAs || opens.Result != Done || opens.Token != 0 || opens.Extra != 1 {
			continue
		}
		for _, e := range commands {
			if e.Mode != await && e.Mode != awaitOpen || e.Result != Done || e.Asked > opens.Asked || e.Begin < opens.Begin {
				continue
			}
			if waited := time.Duration(e.Begin - max(opens.Begin, h.recovered(e))); waited > h.bound() {
				violations = append(violations, Violation{"recovery", fmt.Sprintf("it was open for %v: %s", waited, e.describe(h.Began))})
			}
		}
	}
	return violations
}

// latch is the state of one: it has a count, or is open, or not set. counted is a bit for each participant.
type latch struct{ count, counted int64 }

const (
	unset = -1
	open  = 0
)

// latchModel is a latch without a time to live.
func latchModel() *porcupine.NondeterministicModel {
	return &porcupine.NondeterministicModel{
		Init: func() []any { return []any{latch{unset, 0}} },
		Step: func(state, in, out any) []any {
			before, i, o := state.(latch), in.(input), out.(output)
			after, value, extra, refused := stepLatch(before, i)
			switch {
			case o.result == Unknown:
				return slices.Compact([]any{before, after})
			case o.result == Refused && o.extra == 0: // its context ended, or the generation did: nothing was done
				return []any{before}
			case o.result == Refused && o.extra != refused, o.result == Done && refused != 0:
				return nil
			case o.result == Done && (o.value != value || o.extra != extra):
				return nil
			}
			return []any{after}
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
	}
}

// stepLatch returns what a command does to a latch, and what it replies: a value and a second one, or why it
// is refused.
func stepLatch(l latch, i input) (after latch, value, extra, refused int64) {
	shut := l.count > 0
	switch i.mode {
	case set, rearm:
		if shut || i.mode == set && l.count == open {
			return l, 0, 0, 0
		}
		return latch{i.n, 0}, 0, 1, 0
	case down, downAs:
		by := i.n
		bit := int64(0)
		if i.mode == downAs {
			by, bit = 1, 1<<i.n
		}
		switch {
		case l.count == unset:
			return l, 0, 0, notSet
		case !shut:
			return l, 0, 0, 0
		case l.counted&bit != 0:
			return l, l.count, 0, 0
		case l.count < by:
			return l, 0, 0, invalid
		case l.count == by:
			return latch{open, 0}, 0, 1, 0
		}
		return latch{l.count - by, l.counted | bit}, l.count - by, 1, 0
	case await, awaitOpen, awaitSet:
		switch {
		case i.mode == awaitOpen && l.count == unset:
			return l, 0, 0, 0
		case i.mode == awaitSet && l.count == unset:
			return l, 0, 0, math.MaxInt64
		case l.count == unset:
			return l, 0, 0, notSet
		case shut:
			return l, 0, 0, math.MaxInt64 // it waits
		}
		return l, 0, 0, 0
	case remove:
		if l.count == unset {
			return l, 0, 0, 0
		}
		return latch{unset, 0}, 0, 1, 0
	default:
		return l, max(l.count, 0), 0, 0
	}
}
