package judge

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/test/oracle"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
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
func (h *History) linear(o plan.Object) []plan.Violation {
	if h.Loses() {
		return nil
	}
	var operations []porcupine.Operation
	unknown := 0
	for n, e := range h.of(witness.Command, o.Index) {
		op := porcupine.Operation{ClientId: n, Input: input{e.Mode, e.N}, Call: e.Asked, Return: e.Begin, Output: output{e.Result, e.Token, e.Extra}}
		if e.Result != witness.Done && e.Result != witness.Refused {
			op.Return, op.Output = math.MaxInt64, output{result: witness.Unknown}
			unknown++
		}
		operations = append(operations, op)
	}
	if len(operations) == 0 {
		return nil
	}
	if o.Family == plan.Counting {
		if more := h.overdrawn(o); !o.Changes && (more != nil || o.Busy) { // a model takes too long for what is busy
			return more
		}
	}
	if o.Family == plan.Latch {
		if late := h.late(o); late != nil {
			return late
		}
		if o.Timed {
			return nil
		}
	}
	if unknown > 12 { // each doubles what there is to look at
		h.Tally.Unjudged++
		return nil
	}
	model := latchModel().ToModel()
	if o.Family == plan.Counting {
		model = countingModel(o, o.Exact && h.Plan.Calm()).ToModel()
	}
	result, info := porcupine.CheckOperationsVerbose(model, operations, judging)
	switch result {
	case porcupine.Unknown:
		h.Tally.Unjudged++
	case porcupine.Illegal:
		path := filepath.Join(h.Dir, fmt.Sprintf("%d.html", o.Index))
		_ = porcupine.VisualizePath(model, info, path) // for people
		return []plan.Violation{{Kind: "linearizability", Text: fmt.Sprintf("%d commands of which %d got no answer have no order: %s", len(operations), unknown, path)}}
	}
	return nil
}

// overdrawn looks for moments at which more plain permits were taken for sure than there are. All that may
// have been given back by then count as given back.
func (h *History) overdrawn(o plan.Object) (violations []plan.Violation) {
	type change struct {
		at   int64
		more int64
		entry
	}
	var changes []change
	for _, e := range h.of(witness.Command, o.Index) {
		switch {
		case (e.Mode == witness.PlainTake || e.Mode == witness.PlainDrain) && e.Result == witness.Done:
			changes = append(changes, change{e.Begin, e.N, e})
		case e.Mode == witness.PlainPut && e.Result != witness.Refused:
			changes = append(changes, change{e.Asked, -e.N, e})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.more, b.more)) })
	taken := int64(0)
	for _, c := range changes {
		if taken += c.more; c.more > 0 && taken > int64(o.Capacity) {
			text := fmt.Sprintf("%d plain permits are taken, and there are %d: %s", taken, o.Capacity, c.describe(h.Began))
			violations = append(violations, plan.Violation{Kind: "plain permits", Text: text})
		}
	}
	return violations
}

// late looks for those who learned too late that a latch had opened. Who waits for one to be set may see none
// of a generation that is soon deleted.
func (h *History) late(o plan.Object) (violations []plan.Violation) {
	commands := h.of(witness.Command, o.Index)
	for _, opens := range commands {
		if opens.Mode != witness.LatchDown && opens.Mode != witness.LatchDownAs || opens.Result != witness.Done || opens.Token != 0 || opens.Extra != 1 {
			continue
		}
		for _, e := range commands {
			if e.Mode != witness.LatchAwait && e.Mode != witness.LatchAwaitOpen || e.Result != witness.Done || e.Asked > opens.Asked || e.Begin < opens.Begin {
				continue
			}
			if waited := time.Duration(e.Begin - max(opens.Begin, h.recovered(e))); waited > h.Bound() {
				violations = append(violations, plan.Violation{Kind: "recovery", Text: fmt.Sprintf("it was open for %v: %s", waited, e.describe(h.Began))})
			}
		}
	}
	return violations
}

// latchModel is a latch without a time to live.
func latchModel() *porcupine.NondeterministicModel {
	return &porcupine.NondeterministicModel{
		Init: func() []any { return []any{oracle.Latch{}} },
		Step: func(state, in, out any) []any {
			before, i, o := state.(oracle.Latch), in.(input), out.(output)
			after, value, extra, refused := stepLatch(before, i)
			switch {
			case o.result == witness.Unknown:
				return slices.Compact([]any{before, after})
			case o.result == witness.Refused && o.extra == 0: // its context ended, or the generation did: nothing was done
				return []any{before}
			case o.result == witness.Refused && o.extra != refused, o.result == witness.Done && refused != 0:
				return nil
			case o.result == witness.Done && (o.value != value || o.extra != extra):
				return nil
			}
			return []any{after}
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
	}
}

// stepLatch returns what a command does to a latch, and what it replies: a value and a second one, or why it
// is refused.
func stepLatch(l oracle.Latch, i input) (after oracle.Latch, value, extra, refused int64) {
	var done bool
	switch i.mode {
	case witness.LatchSet, witness.LatchRearm:
		after, done = l.Set(int(i.n), i.mode == witness.LatchRearm)
	case witness.LatchRemove:
		after, done = l.Delete()
	case witness.LatchDown, witness.LatchDownAs:
		by, bit := int(i.n), int64(0)
		if i.mode == witness.LatchDownAs {
			by, bit = 1, 1<<i.n
		}
		after, tally, err := l.CountDown(by, bit)
		switch {
		case errors.Is(err, countdown.ErrNotSet):
			return l, 0, 0, witness.LatchNotSet
		case err != nil:
			return l, 0, 0, witness.LatchInvalid
		}
		return after, int64(tally.Remaining), number(tally.Counted), 0
	case witness.LatchAwait, witness.LatchAwaitOpen, witness.LatchAwaitSet:
		return l, 0, 0, awaits(l, i.mode)
	default:
		return l, int64(l.Count), 0, 0
	}
	return after, 0, number(done), 0
}

func number(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// awaits returns why an Await of a latch is refused. math.MaxInt64: it waits.
func awaits(l oracle.Latch, mode int64) int64 {
	switch {
	case l.Status == countdown.Shut, l.Status == countdown.NotSet && mode == witness.LatchAwaitSet:
		return math.MaxInt64
	case l.Status == countdown.NotSet && mode == witness.LatchAwait:
		return witness.LatchNotSet
	}
	return 0
}
