package lua_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Parties that arrive together arrive as if they came one after the other, and a copy of each is known.
// Rule 17.
func TestArriveTogether(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		conn := newBench(t, s).conn
		names := 0
		rapid.Check(t, func(r *rapid.T) {
			names++
			var keys [2]*lua.Keys
			for i := range keys {
				var err error
				keys[i], err = lua.NewKeys(lua.Barrier, fmt.Sprintf("b%d-%d", names, i), false)
				require.NoError(r, err)
			}
			acts := rapid.Bool().Draw(r, "acts")
			parties := rapid.Int64Range(1, 5).Draw(r, "parties")
			var first [2]int64 // generations are counted from these
			since := func(i int, a lua.Arrival) lua.Arrival {
				if a.Generation > 0 {
					if first[i] == 0 {
						first[i] = a.Generation
					}
					a.Generation -= first[i]
				}
				a.Round = lua.Round{Phase: a.Round.Phase, Number: a.Round.Number}
				return a
			}
			for n := range rapid.IntRange(1, 4).Draw(r, "batches") {
				client := rapid.SampledFrom([]string{"A", "B"}).Draw(r, "client")
				size := rapid.IntRange(1, 5).Draw(r, "size")
				wants := parties
				if rapid.IntRange(0, 5).Draw(r, "other") == 0 {
					wants++
				}
				member := ""
				if rapid.Bool().Draw(r, "joins") {
					member = client + ":999"
				}
				ids := make([]string, size)
				for i := range ids {
					ids[i] = fmt.Sprintf("%s:%d", client, 1+10*n+i)
				}
				together, err := conn.ArriveTogether(t.Context(), keys[0], lua.Once{ID: ids[0]}, ids[1:], wants, 60_000, acts, member)
				require.NoError(r, err)
				require.Len(r, together, size)
				var leads string
				for i, id := range ids {
					alone, err := conn.Arrive(t.Context(), keys[1], lua.Once{ID: id}, wants, 60_000, acts, member)
					require.NoError(r, err)
					got, want := since(0, together[i]), since(1, alone)
					got.Round, want.Round = lua.Round{}, lua.Round{} // the first has the state after all of them
					require.Equal(r, want, got, "%v %d", ids, i)
					again, err := conn.Arrive(t.Context(), keys[0], lua.Once{ID: id}, wants, 60_000, acts, member)
					require.NoError(r, err)
					if together[i].Generation != lua.Full { // which may come again
						require.Equal(r, together[i].Generation, again.Generation, "a copy")
						require.Equal(r, together[i].Index, again.Index, "a copy")
					}
					if alone.Leads {
						leads = id
					}
				}
				if leads != "" { // the others were told that they must wait until it has
					for i := range keys {
						_, err := conn.Settle(t.Context(), keys[i], lua.Once{ID: leads}, lua.Done, 0, 0)
						require.NoError(r, err)
					}
				}
			}
		})
	})
}
