package lua_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// turns is a claim of permits with tokens for further turns.
func turns(owner, demand string, n int) lua.Claim {
	c := request(owner, demand)
	c.Turns = n
	return c
}

// Tokens for further turns are the owner's alone: whoever gets permits later has greater ones. They are
// reserved at once and from the queue, and a question that is repeated reserves none.
// Rule 41.
func TestTokensForFurtherTurns(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		box := b.open("A")
		b.set(2)
		ask := func(c lua.Claim, mode lua.Mode) lua.Acquired { return taken(t, b.trade(lua.Take(c, mode))[0]) }
		first := ask(turns("A:1", "1", 10), lua.First)
		require.EqualValues(t, 10, first.Reserved)
		again := ask(turns("A:1", "1", 10), lua.Again)
		require.Equal(t, lua.Owned{Token: first.Token}, again.Owned)
		second := b.take("A:2", "1", lua.First)
		require.Greater(t, second.Token, first.Token+10)

		replies := b.trade(lua.Take(turns("A:3", "1p", 20), lua.First), lua.Take(turns("A:4", "1", 30), lua.First))
		for _, reply := range replies {
			require.True(t, taken(t, reply).Queued)
		}
		require.Equal(t, []string{turns("A:3", "1p", 20).Entry(), turns("A:4", "1", 30).Entry()}, b.census().Queue)
		for i, entry := range b.census().Queue {
			read, err := lua.ParseEntry(entry)
			require.NoError(t, err)
			require.Equal(t, lua.Entry{Owner: []string{"A:3", "A:4"}[i], Permits: 1}, read)
		}
		last := second.Token
		for i, owner := range []string{"A:1", "A:2"} {
			require.True(t, b.give(owner, 0))
			m := box.next(t)
			require.EqualValues(t, 3+i, m.Number)
			require.EqualValues(t, 20+10*i, m.Reserved)
			require.False(t, m.Others)
			require.Greater(t, m.Token, last)
			last = m.Token + m.Reserved
		}
		// In one script with who comes later.
		replies = b.trade(
			lua.Give(lua.Ending{Owner: "A:3"}), lua.Give(lua.Ending{Owner: "A:4"}),
			lua.Take(turns("A:5", "1", 40), lua.First), lua.Take(turns("A:6", "1", 0), lua.First),
		)
		fifth, sixth := taken(t, replies[2]), taken(t, replies[3])
		require.Greater(t, fifth.Token, last)
		require.EqualValues(t, 40, fifth.Reserved)
		require.Equal(t, lua.Owned{Token: fifth.Token + 41}, sixth.Owned)
		b.quiet(t, "A")
	})
}

// Tokens are reserved no further ahead of the clock than a restart takes, and none for a name that is far
// ahead of it already.
// Rule 41.
func TestTurnsStayNearTheClock(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		b.set(100)
		now := func() int64 {
			now, err := b.do("TIME").AsIntSlice()
			require.NoError(t, err)
			return now[0]*1_000_000 + now[1]
		}
		requests := make([]lua.Request, 50)
		for n := range requests {
			requests[n] = lua.Take(turns(lua.Owner("A", uint64(n+1)), "1", 1000), lua.First)
		}
		last, reserved := lua.Owned{}, int64(0)
		for _, reply := range b.trade(requests...) {
			a := taken(t, reply)
			require.Greater(t, a.Token, last.Token+last.Reserved)
			last, reserved = a.Owned, reserved+a.Reserved
		}
		require.Less(t, last.Token+last.Reserved, now()+5000+51, "and one for each")
		require.GreaterOrEqual(t, reserved, int64(4000))
		hour := now() + 3_600_000_000
		require.NoError(t, b.do("SET", b.lock.All()[2], strconv.FormatInt(hour, 10)).Error())
		a := taken(t, b.trade(lua.Take(turns("A:90", "1", 1000), lua.First))[0])
		require.Equal(t, lua.Owned{Token: hour + 1}, a.Owned)
	})
}
