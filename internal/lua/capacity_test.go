package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A copy of a command that changed the number answers with what there was when it ran, whatever has happened
// since.
func TestCapacityRepeatedAnswersAsThen(t *testing.T) {
	redistest.Together(t)
	type command struct {
		id     string
		change lua.Change
		n      int64
	}
	type answer struct {
		done        bool
		total, free int64
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, family := range map[string]lua.Family{"leased": lua.Leased, "plain": lua.Plain} {
			s.Run(t, name, func(t *testing.T) {
				b := newSem(t, s, family)
				require.NoError(t, b.do("FLUSHALL").Error())
				b.set(2)
				b.open("W")
				if family == lua.Plain { // the first command grants it four of the five
					require.Positive(t, b.take("W:1", "4", lua.First).Sequence)
				} else {
					b.take("W:1", "1", lua.First)
				}
				commands := []command{{"C:1", lua.Add, 3}, {"C:2", lua.Set, 7}, {"C:3", lua.Add, -1}}
				if family == lua.Plain {
					commands = append(commands, command{"C:4", lua.Drain, 0})
				}
				ask := func(i int) (a answer) {
					c := commands[i]
					var err error
					a.done, a.total, a.free, err = b.conn.Capacity(t.Context(), b.lock, c.id, 0, c.change, c.n, most, 0)
					require.NoError(t, err)
					return a
				}
				var first []answer
				for i := range commands {
					first = append(first, ask(i))
				}
				b.set(50)
				for i, want := range first {
					require.Equal(t, want, ask(i), "the copy of command %d", i)
				}
				census := b.census()
				require.EqualValues(t, 50, census.Free+census.Held, "copies change nothing")
			})
		}
	})
}
