package lua_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Where the client knows the clock, that is the token of a free lock, and no script looks at the clock. All
// else is as without it.
// Rule 24.
func TestReckonedClock(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		acquire := func(owner string, clock, seen int64) lua.Acquired {
			a, err := b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: owner, Lease: 10_000, Clock: clock}, seen, lua.First)
			require.NoError(t, err)
			return a
		}
		again := func(owner string, after int64) int64 { return b.acquire(owner, 10_000, lua.Again).Token - after }
		clock := time.Now().Add(-time.Hour).UnixMicro()

		a := acquire("A:1", clock, 0)
		require.Equal(t, clock, a.Token)
		require.True(t, a.Reckoned)
		require.Zero(t, again("A:1", a.Token), "a repeated acquire returns the same")
		other := acquire("B:1", clock+1, 0)
		require.True(t, other.Queued)
		require.Equal(t, clock+1, other.Sequence)
		require.Zero(t, other.Now, "nobody has looked at the clock")
		require.False(t, b.release("B:1", entry("B:1", 10_000)), "it was queued")
		require.True(t, b.release("A:1", ""))
		require.Empty(t, b.inspect().Queue)

		b.acquire("A:6", 10_000, lua.First)
		behind := acquire("B:2", clock+2, 0)
		require.Greater(t, behind.Sequence, clock+2, "another one has a greater number already")
		require.InDelta(t, time.Now().UnixMicro(), behind.Now, 60e6, "so the reply tells the server's clock")
		require.False(t, b.release("B:2", entry("B:2", 10_000)), "it was queued")
		require.True(t, b.release("A:6", ""))

		last := acquire("A:2", clock-5, 0).Token
		require.Greater(t, last, behind.Sequence, "tokens grow, whatever the client reckons")
		require.True(t, b.release("A:2", ""))
		seen := acquire("A:3", clock, last+1000)
		require.False(t, seen.Reckoned, "it is behind what the client has seen")
		require.Greater(t, seen.Token, last+1000)
		require.True(t, b.release("A:3", ""))

		require.NoError(t, b.do("DEL", b.lock.All()[2]).Error())
		a = acquire("A:4", clock+9, 0)
		require.Equal(t, clock+9, a.Token)
		ttl, err := b.do("PTTL", b.lock.All()[2]).AsInt64()
		require.NoError(t, err)
		require.InDelta(t, time.Hour.Milliseconds(), ttl, 60_000, "the first token is kept for an hour")
		require.True(t, b.release("A:4", ""))

		attempt := func(owner string, clock, until int64) lua.Acquired {
			claim := lua.Claim{Owner: owner, Lease: 10_000, Clock: clock, Until: until}
			a, err := b.conn.Acquire(t.Context(), b.lock, claim, 0, lua.Try)
			require.NoError(t, err)
			return a
		}
		a = attempt("A:7", clock+20, 0)
		require.Equal(t, clock+20, a.Token)
		require.True(t, a.Reckoned)
		refused := attempt("B:3", clock+21, 0)
		require.Zero(t, refused.Token)
		require.Zero(t, refused.Now, "no script has looked at the clock")
		require.True(t, b.release("A:7", ""))
		require.True(t, attempt("A:8", clock+30, clock+31).Late, "a deadline is by the server's clock, which is an hour ahead")
		a = attempt("A:9", clock+40, time.Now().Add(time.Hour).UnixMicro())
		require.False(t, a.Reckoned)
		require.Greater(t, a.Token, clock+40, "so it is the server's clock")
		require.True(t, b.release("A:9", ""))
		require.NoError(t, b.do("DEL", b.lock.All()[2]).Error())

		require.NoError(t, b.do("SET", b.lock.All()[2], "foreign").Error())
		_, err = b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "A:5", Lease: 10_000, Clock: clock}, 0, lua.First)
		require.Equal(t, lua.WrongType, lua.Classify(err), err)
		kept, err := b.do("GET", b.lock.All()[2]).ToString()
		require.NoError(t, err)
		require.Equal(t, "foreign", kept)
		require.Empty(t, b.inspect().Owner)
	})
}

// A token's key that is in use lives for a day from then on, though it is set anew only every thousand
// seconds.
func TestTokenIsKept(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		token := b.lock.All()[2]
		b.acquire("A:1", 10_000, lua.First)
		require.True(t, b.release("A:1", ""))
		earlier := time.Now().Add(-1000 * time.Second).UnixMicro()
		require.NoError(t, b.do("SET", token, strconv.FormatInt(earlier, 10), "PX", "5000").Error())
		b.acquire("A:2", 10_000, lua.First)
		ttl, err := b.do("PTTL", token).AsInt64()
		require.NoError(t, err)
		require.Greater(t, ttl, int64(80_000_000))
		require.True(t, b.release("A:2", ""))
	})
}
