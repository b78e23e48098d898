package lua_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// After the server's clock was set back nobody's lease is longer than it was at the beginning, once somebody
// has asked.
// Rule 24.
func TestLeaseIsCut(t *testing.T) {
	redistest.Together(t)
	t.Run("of a lock", func(t *testing.T) {
		s := redistest.NewJumping(t)
		b := newBench(t, s)
		b.acquire("A:1", 10_000, lua.First)
		s.Jump(t, -time.Hour)
		require.LessOrEqual(t, b.acquire("B:1", 60_000, lua.Try).Ends, int64(10_000))
		ttl, err := b.do("PTTL", b.lock.Name()).AsInt64()
		require.NoError(t, err)
		require.InDelta(t, 10_000, ttl, 1000)
		renewed, _, err := b.conn.Renew(t.Context(), []lua.Renewal{{Keys: b.lock, Owner: "A:1", Lease: 10_000}})
		require.NoError(t, err)
		require.Equal(t, []bool{true}, renewed)
	})
	t.Run("of one that was granted by message", func(t *testing.T) {
		s := redistest.NewJumping(t)
		b := newBench(t, s)
		b.open("B")
		b.acquire("A:1", 10_000, lua.First)
		b.acquire("B:1", 20_000, lua.First)
		b.release("A:1", "")
		s.Jump(t, -time.Hour)
		require.LessOrEqual(t, b.acquire("C:1", 60_000, lua.Try).Ends, int64(20_000))
	})
	t.Run("but not of one that shall stay taken", func(t *testing.T) {
		s := redistest.NewJumping(t)
		b := newBench(t, s)
		b.acquire("A:1", 10_000, lua.First)
		_, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "A:1", Rest: 50_000}, 0)
		require.NoError(t, err)
		require.Greater(t, b.acquire("B:1", 10_000, lua.Try).Ends, int64(40_000))
		s.Jump(t, -time.Hour)
		require.InDelta(t, 50_000, b.acquire("B:1", 10_000, lua.Try).Ends, 1000)
		s.Jump(t, 51*time.Second)
		require.Positive(t, b.acquire("B:1", 10_000, lua.Try).Token, "a jump forward ends it early")
	})
}

// The same of permits, some of which have another lease.
// Rule 24.
func TestPermitLeaseIsCut(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewJumping(t)
	b := newSem(t, s, lua.Leased)
	b.set(6)
	brief := request("A:1", "3")
	brief.Lease = 5000
	b.trade(lua.Take(brief, lua.First))
	b.take("A:2", "2", lua.First) // for a minute
	s.Jump(t, -time.Hour)
	b.take("A:3", "1", lua.First)
	require.LessOrEqual(t, b.take("B:1", "1", lua.Try).Ends, int64(5001))
	census, err := b.conn.Census(t.Context(), b.lock, 10)
	require.NoError(t, err)
	ends := map[string]int64{}
	for _, h := range census.Holders {
		ends[h.Owner] = h.Ends
	}
	require.InDelta(t, 5000, ends["A:1"], 1000)
	require.InDelta(t, 60_000, ends["A:2"], 1000)
	require.InDelta(t, 60_000, ends["A:3"], 1000)
	s.Jump(t, 6*time.Second)
	require.Positive(t, b.take("B:1", "3", lua.Try).Token, "all permits of an owner are cut")
}

// A lease that rightly ends later hides it for a few questions, and not for good.
func TestPermitLeaseBehindALongerOneIsCut(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewJumping(t)
	b := newSem(t, s, lua.Leased)
	b.set(2)
	b.take("A:1", "1", lua.First) // for a minute
	s.Jump(t, -time.Hour)
	longer := request("A:2", "1")
	longer.Lease = 3 * time.Hour.Milliseconds()
	b.trade(lua.Take(longer, lua.First))
	asked := 0
	require.Eventually(t, func() bool {
		asked++
		return b.take(fmt.Sprint("B:", asked), "1", lua.Try).Ends <= 60_001
	}, 10*time.Second, time.Millisecond)
	s.Jump(t, 61*time.Second)
	require.Positive(t, b.take("C:1", "1", lua.Try).Token)
}

// A barrier whose hash was lost takes no time from a member that lives, whatever lease others say.
func TestMemberOfALostBarrierIsNotCut(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		conn := lua.Conn{Client: s.Client(t)}
		keys, err := lua.NewKeys(lua.Barrier, "barrier", false)
		require.NoError(t, err)
		_, _, err = conn.JoinBarrier(t.Context(), keys, lua.Once{ID: "A:1"}, 60_000)
		require.NoError(t, err)
		require.NoError(t, conn.Client.Do(t.Context(), conn.Client.B().Del().Key("barrier").Build()).Error())
		_, _, err = conn.JoinBarrier(t.Context(), keys, lua.Once{ID: "B:1"}, 5000)
		require.NoError(t, err)
		for range 2 {
			_, err = conn.Attend(t.Context(), keys, lua.Attendance{Client: "B", Lease: 5000, Member: "B:1"})
			require.NoError(t, err)
		}
		scores, err := conn.Client.Do(t.Context(), conn.Client.B().Zrange().Key(keys.All()[3]).Min("0").Max("-1").Withscores().Build()).AsZScores()
		require.NoError(t, err)
		require.Len(t, scores, 2)
		require.Greater(t, scores[1].Score-scores[0].Score, 30_000.0)
	})
}

// The same of a latch, shut or open.
// Rule 24.
func TestTimeOfLatchIsCut(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewJumping(t)
	conn := lua.Conn{Client: s.Client(t)}
	keys, err := lua.NewKeys(lua.Latch, "latch", false)
	require.NoError(t, err)
	set := func(id string, ttl int64) {
		t.Helper()
		done, err := conn.Arm(t.Context(), keys, lua.Once{ID: id}, 1, ttl, true)
		require.NoError(t, err)
		require.True(t, done)
	}
	phase := func() lua.Round {
		t.Helper()
		round, _, err := conn.Latch(t.Context(), keys, 0)
		require.NoError(t, err)
		return round
	}
	set("A:1", 10_000)
	s.Jump(t, -time.Hour)
	require.InDelta(t, 10_000, phase().Ends, 1000)
	s.Jump(t, 11*time.Second)
	require.Equal(t, lua.Expired, phase().Phase)

	set("A:2", 10_000)
	_, err = conn.Count(t.Context(), keys, lua.Once{ID: "A:3"}, 1, "")
	require.NoError(t, err)
	s.Jump(t, -time.Hour)
	require.Equal(t, lua.Open, phase().Phase)
	s.Jump(t, 11*time.Second)
	require.Equal(t, lua.Deleted, phase().Phase, "it is open for as long as it was said")
}

// The same of the arrivals at a barrier, and of its members.
// Rule 24.
func TestLeaseAtBarrierIsCut(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewJumping(t)
	conn := lua.Conn{Client: s.Client(t)}
	keys, err := lua.NewKeys(lua.Barrier, "barrier", false)
	require.NoError(t, err)
	arrive := func(id, member string) {
		t.Helper()
		a, err := conn.Arrive(t.Context(), keys, lua.Once{ID: id}, 4, 10_000, false, member)
		require.NoError(t, err)
		require.Positive(t, a.Generation)
	}
	joined, _, err := conn.JoinBarrier(t.Context(), keys, lua.Once{ID: "A:1"}, 10_000)
	require.NoError(t, err)
	require.True(t, joined)
	arrive("B:1", "")
	arrive("C:1", "C:2")
	s.Jump(t, -time.Hour)
	attend := func(client string) lua.Round {
		t.Helper()
		round, err := conn.Attend(t.Context(), keys, lua.Attendance{Client: client, Lease: 10_000})
		require.NoError(t, err)
		return round
	}
	require.InDelta(t, 10_000, attend("C").Ends, 1000)
	for _, set := range []string{keys.All()[1], keys.All()[3]} {
		scores, err := conn.Client.Do(t.Context(), conn.Client.B().Zrange().Key(set).Min("0").Max("-1").Withscores().Build()).AsZScores()
		require.NoError(t, err)
		require.Len(t, scores, 2)
		for _, z := range scores {
			require.InDelta(t, time.Now().Add(-time.Hour+10*time.Second).UnixMilli(), z.Score, 1000, z.Member)
		}
	}
	s.Jump(t, 11*time.Second)
	require.Equal(t, lua.Broken, attend("C").Phase)
}
