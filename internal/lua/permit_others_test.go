package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A client learns that others wait: by the reply when it queues behind one of them, by a message when one
// queues behind it, by a grant, and when it asks again.
// Rule 41.
func TestPermitsOthersAreTold(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		a, other := b.open("A"), b.open("B")
		b.set(1)
		ask := func(c lua.Claim, mode lua.Mode, sequence bool) (others bool) {
			reply := taken(t, b.trade(lua.Take(c, mode))[0])
			require.True(t, reply.Queued)
			require.Equal(t, sequence, reply.Sequence > 0)
			return reply.Others
		}
		told := func(box *inbox, number int) {
			t.Helper()
			m := box.next(t)
			require.Equal(t, lua.Want, m.Kind)
			require.EqualValues(t, number, m.Number)
		}
		require.Positive(t, b.take("A:1", "1", lua.First).Token)
		require.False(t, ask(turns("A:2", "1", 10), lua.First, true), "nobody else")
		require.False(t, ask(turns("A:3", "1", 10), lua.First, true), "nobody else")
		silent := func() {
			t.Helper()
			for _, client := range []string{"A", "B"} {
				b.drain(client, func(m lua.Message) { require.Fail(t, "told", "%c", m.Kind) })
			}
		}
		silent()
		require.True(t, ask(request("B:1", "1"), lua.First, true))
		told(a, 3)
		require.True(t, ask(request("B:2", "1"), lua.First, true), "the first is another's")
		require.True(t, ask(turns("A:4", "1", 10), lua.First, true))
		require.True(t, ask(request("A:5", "1"), lua.First, true))
		silent() // those know it from their replies
		require.False(t, ask(turns("A:2", "1", 10), lua.Again, false))
		told(a, 2)
		give := func(owners ...string) {
			var requests []lua.Request
			for _, owner := range owners {
				requests = append(requests, lua.Give(lua.Ending{Owner: owner}))
			}
			b.trade(requests...)
		}
		granted := func(number int, others bool) {
			t.Helper()
			m := a.next(t)
			require.Equal(t, lua.Grant, m.Kind)
			require.EqualValues(t, number, m.Number)
			require.Equal(t, others, m.Others)
		}
		give("A:1")
		granted(2, false) // the one behind it is A's: only that was looked at
		give("A:2")
		granted(3, true)
		give("A:3") // to those of B, of which none is left then
		give("B:1")
		give("B:2")
		granted(4, false)
		require.EqualValues(t, 1, other.next(t).Number)
		require.EqualValues(t, 2, other.next(t).Number)
		silent()
	})
}

// One that waits alone is told, whatever it is: perhaps it came first of many of its process.
// Rule 41.
func TestLastInTheQueueIsToldOnce(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, family := range []lua.Family{lua.Leased, lua.Plain} {
			b := newSem(t, s, family)
			require.NoError(t, b.do("FLUSHALL").Error())
			box := b.open("A")
			b.set(0)
			if family == lua.Leased {
				b.set(1)
				require.Positive(t, b.take("A:1", "1", lua.First).Token)
			}
			require.True(t, b.take("A:2", "1", lua.First).Queued)
			require.True(t, b.take("B:1", "1", lua.First).Others)
			require.Equal(t, lua.Want, box.next(t).Kind)
			b.take("B:2", "1", lua.First)
			b.take("D:1", "1", lua.First)
			b.drain("A", func(m lua.Message) { require.Fail(t, "told", "%c", m.Kind) })
		}
	})
}
