package judge

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// plainPermits is the state of plain permits: how many are free, or that they are not set.
type plainPermits struct {
	set  bool
	free int64
}

// countingModel is plain permits, of which so many are free as an object has once a client has said so. If it
// is not exact, fewer may be seen than are free: somebody whose context ends may be granted permits all the
// same, and gives them back.
func countingModel(of plan.Object, exact bool) *porcupine.NondeterministicModel {
	declared := plainPermits{true, int64(of.Capacity)}
	return &porcupine.NondeterministicModel{
		Init: func() []any { return []any{plainPermits{}} },
		Step: func(state, in, out any) (next []any) {
			before := state.(plainPermits)
			next = stepPlain(before, in.(input), out.(output), declared.free, exact)
			if !before.set { // the client may have declared how many there are
				next = append(next, stepPlain(declared, in.(input), out.(output), declared.free, exact)...)
			}
			return next
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
	}
}

// stepPlain returns the states in which a command may leave plain permits that were in one state when it
// replied with this.
func stepPlain(before plainPermits, i input, o output, capacity int64, exact bool) []any {
	after, value, extra := before, before.free, int64(0)
	seen := i.mode == witness.PlainLook || i.mode == witness.PlainAdd
	switch i.mode {
	case witness.PlainTake:
		after.free -= i.n
	case witness.PlainDrain:
		after.free -= i.n
		if o.result == witness.Unknown {
			after.free = min(before.free, 0)
		} else if o.result == witness.Done && (i.n > max(before.free, 0) || exact && i.n != max(before.free, 0)) {
			return nil
		}
	case witness.PlainPut, witness.PlainAdd:
		after.free += i.n
		value = after.free
	case witness.PlainInitialize:
		if !before.set {
			after, extra = plainPermits{true, capacity}, 1
		}
	case witness.PlainErase:
		if before.set {
			after, extra = plainPermits{}, 1
		}
	}
	impossible := !before.set && i.mode != witness.PlainInitialize && i.mode != witness.PlainErase || i.mode == witness.PlainTake && after.free < 0
	switch {
	case o.result == witness.Refused:
		return []any{before}
	case o.result == witness.Unknown && !impossible && after != before:
		return []any{before, after}
	case o.result == witness.Unknown:
		return []any{before}
	case impossible, seen && (o.value > value || exact && o.value != value), !seen && o.extra != extra:
		return nil
	}
	return []any{after}
}
