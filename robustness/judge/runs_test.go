package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// kindsOf are the kinds of some violations.
func kindsOf(violations []plan.Violation) (kinds []string) {
	for _, v := range violations {
		kinds = append(kinds, v.Kind)
	}
	return kinds
}

// runOf is one of a function, trusted from begin until it left.
func runOf(token, name, attempt, begin, left int64) entry {
	r := &witness.Record{Kind: witness.Run, N: name, Token: token, Extra: attempt, Asked: begin, Begin: begin, End: left, Leaving: left, Result: witness.Done}
	return entry{Record: r, end: left}
}

// callOf is one that was answered with the token of a run. here: that was its own.
func callOf(token, name, asked, answered int64, here bool) entry {
	r := &witness.Record{Kind: witness.Call, N: name, Token: token, Asked: asked, Begin: answered, Result: witness.Done}
	if here {
		r.Extra = 1
	}
	return entry{Record: r}
}

// What is done once is done by one run, and by no other after that.
func TestDoneOnce(t *testing.T) {
	first, call := runOf(5, 1, 1, 10, 20), callOf(5, 1, 9, 25, true)
	for name, test := range map[string]struct {
		more []entry
		want []string
	}{
		"once":                   {nil, nil},
		"of another name":        {[]entry{runOf(7, 2, 1, 30, 40), callOf(7, 2, 29, 45, true)}, nil},
		"others are released":    {[]entry{callOf(0, 1, 11, 27, false)}, nil},
		"done by nobody":         {[]entry{callOf(0, 3, 11, 27, false)}, []string{"once"}},
		"it runs again":          {[]entry{runOf(6, 1, 2, 30, 40)}, []string{"once"}},
		"done twice":             {[]entry{runOf(6, 1, 2, 21, 24), callOf(6, 1, 9, 26, true)}, []string{"once"}},
		"two at once":            {[]entry{runOf(6, 1, 2, 15, 19)}, []string{"exclusion"}},
		"a token that is less":   {[]entry{runOf(4, 1, 0, 21, 24)}, []string{"token order"}},
		"attempts do not grow":   {[]entry{runOf(6, 1, 1, 21, 24)}, []string{"attempts"}},
		"more than there may be": {[]entry{runOf(6, 1, plan.Attempts+1, 21, 24)}, []string{"attempts"}},
	} {
		h := &History{entries: append([]entry{first, call}, test.more...)}
		require.Equal(t, test.want, kindsOf(h.ran(plan.Object{Family: plan.Onces})), name)
	}
}

// Who shares gets what a run gave that had not returned when it came.
func TestSharedCalls(t *testing.T) {
	run, call := runOf(5, 0, 1, 10, 20), callOf(5, 0, 9, 25, true)
	for name, test := range map[string]struct {
		other entry
		want  []string
	}{
		"it came in time": {callOf(5, 0, 24, 30, false), nil},
		"it came late":    {callOf(5, 0, 26, 30, false), []string{"share"}},
		"of nobody":       {callOf(6, 0, 24, 30, false), []string{"share"}},
	} {
		h := &History{entries: []entry{run, call, test.other}}
		require.Equal(t, test.want, kindsOf(h.ran(plan.Object{Family: plan.Shared})), name)
	}
}

// Ticks come in their order. Where nothing fails each is run once, and none is left out.
func TestTicked(t *testing.T) {
	const next = 1000 + int64(plan.Period/1e6)
	for name, test := range map[string]struct {
		second entry
		want   []string
	}{
		"the next one":   {runOf(6, next, 1, 30, 40), nil},
		"the one before": {runOf(6, 950, 1, 30, 40), []string{"tick order"}},
		"again":          {runOf(6, 1000, 2, 30, 40), []string{"tick twice"}},
		"left out":       {runOf(6, next+1, 1, 30, 40), []string{"tick"}},
	} {
		h := &History{entries: []entry{runOf(5, 1000, 1, 10, 20), test.second}}
		require.Equal(t, test.want, kindsOf(h.ran(plan.Object{Family: plan.Ticks, Capacity: 2})), name)
	}
}

// No write with a smaller token is done after one with a greater, nor overwrites it.
func TestWrites(t *testing.T) {
	write := func(token, was, asked, answered, result int64) entry {
		return entry{Record: &witness.Record{Kind: witness.Write, Mode: 1, Token: token, Extra: was, Asked: asked, Begin: answered, Result: result}}
	}
	for name, test := range map[string]struct {
		second entry
		want   []string
	}{
		"greater":           {write(6, 5, 30, 40, witness.Done), nil},
		"smaller":           {write(4, 5, 30, 40, witness.Done), []string{"fence"}},
		"refused":           {write(4, 0, 30, 40, witness.Refused), nil},
		"at the same time":  {write(4, 3, 19, 40, witness.Done), nil},
		"it reads an older": {write(6, 4, 30, 40, witness.Done), []string{"fence"}},
	} {
		h := &History{entries: []entry{write(5, 3, 10, 20, witness.Done), test.second}}
		require.Equal(t, test.want, kindsOf(h.writes(plan.Object{Family: plan.Fenced})), name)
	}
}
