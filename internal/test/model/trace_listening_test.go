package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// One script has a client begin to wait, and gives back what another of its requests had. It is granted that
// by a message, since who stood in front of it does not listen any more. Then its own subscription ends: the
// record shows that it listened before, and not after.
func TestTheCallerMayStopListening(t *testing.T) {
	k := newTracedPool("p", false)
	k.set, k.last = true, 10
	k.held = []holding[string]{{id: "B:1", n: 1, token: 10}}
	k.ends["B:1"] = span{1_000_000, 1_000_000}
	k.queue = []place[string]{{id: "A:1", demand: demand{n: 1}}, {id: "A:2", demand: demand{n: 1}}}
	args := []string{"B:2", "10 ", "100", "", "take", "B:2", "600", "first", "1", "give", "B:1", "", "0", ""}
	step := &redistest.Step{
		Script: "trade", Keys: []string{"p"}, Args: args, Now: 21,
		Reply:    []any{[]any{int64(20), int64(597), int64(20), int64(1)}, int64(1)},
		Messages: []redistest.Published{{Channel: "latchkey_inbox:B", Text: "1 s 2 21 0 0 20 600 p"}},
	}
	for _, listening := range [][]string{nil, {"latchkey_inbox:B"}} {
		step.Listening = listening
		after, err := k.next(newPermitCall("trade", false, args), step, moment{19, 21}, []string{"latchkey_inbox:B"})
		require.NoError(t, err)
		require.Len(t, after, 1)
		require.Equal(t, int64(21), after[0].last)
	}
	step.Listening = nil
	_, err := k.next(newPermitCall("trade", false, args), step, moment{19, 21}, nil)
	require.ErrorContains(t, err, "a message to latchkey_inbox:B")
}
