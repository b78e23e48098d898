package lua_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// No waiter sleeps longer than the shortest lease of those that may hold before it.
// Rule 7.
func TestShortestLeaseIsKnown(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		first, second := b.open("B"), b.open("C")
		b.acquire("A:1", 10_000, lua.First)
		require.Greater(t, b.acquire("B:1", 10_000, lua.First).Ends, int64(5000))
		require.Greater(t, b.acquire("C:1", 10_000, lua.First).Ends, int64(5000))
		b.open("D")
		require.EqualValues(t, 500, b.acquire("D:1", 500, lua.First).Ends)
		for n, box := range []*inbox{first, second} {
			m := box.next(t)
			require.Equal(t, lua.Ends, m.Kind, "those who wait are told once: %d", n)
			require.EqualValues(t, 500, m.Lease)
		}
		require.EqualValues(t, 500, b.acquire("D:2", 700, lua.First).Ends)
		b.expectNone("B")
		require.EqualValues(t, 500, b.acquire("E:1", 10_000, lua.First).Ends, "who comes later is told by the reply")
		require.EqualValues(t, 500, b.acquire("B:1", 10_000, lua.Again).Ends, "and so is who asks again")
		key := "latchkey_pace" + strings.TrimPrefix(b.lock.All()[1], "latchkey_queue")
		ttl, err := b.do("PTTL", key).AsInt64()
		require.NoError(t, err)
		require.InDelta(t, 60_000, ttl, 1000)
	})
}

// A foreign key in its place is worth nothing, and hurts nobody.
func TestShortestLeaseIsForeign(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		key := "latchkey_pace" + strings.TrimPrefix(b.lock.All()[1], "latchkey_queue")
		require.NoError(t, b.do("RPUSH", key, "x").Error())
		b.acquire("A:1", 10_000, lua.First)
		require.Greater(t, b.acquire("B:1", 10_000, lua.First).Ends, int64(5000))
		require.EqualValues(t, 300, b.acquire("B:2", 300, lua.First).Ends)
	})
}

// An attempt that arrives when its time is over does nothing; before that it is as any other.
// Rule 2.
func TestLateAttempt(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		now, err := b.conn.Time(t.Context(), nil)
		require.NoError(t, err)
		claim := lua.Claim{Owner: "A:1", Lease: 1000, Longest: 10, Until: now - 1}
		a, err := b.conn.Acquire(t.Context(), b.lock, claim, 0, lua.Try)
		require.NoError(t, err)
		require.True(t, a.Late)
		require.GreaterOrEqual(t, a.Now, now)
		require.Empty(t, b.inspect().Owner)
		claim.Until = now + time.Minute.Microseconds()
		a, err = b.conn.Acquire(t.Context(), b.lock, claim, 0, lua.Try)
		require.NoError(t, err)
		require.Positive(t, a.Token)
	})
}

func TestLateAttemptAtPermits(t *testing.T) {
	redistest.Together(t)
	for _, family := range []lua.Family{lua.Leased, lua.Plain} {
		redistest.Each(t, func(t *testing.T, s *redistest.Server) {
			b := newSem(t, s, family)
			b.set(3)
			now, err := b.conn.Time(t.Context(), nil)
			require.NoError(t, err)
			late, soon := request("A:1", "1"), request("A:2", "1")
			late.Until, soon.Until = now-1, now+time.Minute.Microseconds()
			require.True(t, taken(t, b.trade(lua.Take(late, lua.Try))[0]).Late, "the short way")
			replies := b.trade(lua.Take(late, lua.Try), lua.Take(soon, lua.Try))
			require.True(t, taken(t, replies[0]).Late, "the transaction")
			require.Positive(t, taken(t, replies[1]).Token)
			require.EqualValues(t, 2, b.census().Free)
		})
	}
}

// Only whoever has the shortest lease keeps it: when it has gone, the others may sleep longer again.
func TestShortestLeaseIsForgotten(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		key := "latchkey_pace" + strings.TrimPrefix(b.lock.All()[1], "latchkey_queue")
		b.acquire("A:1", 10_000, lua.First)
		b.acquire("B:1", 1500, lua.First)
		b.acquire("C:1", 100, lua.First)
		require.NoError(t, b.do("PEXPIRE", key, "5000").Error())
		b.acquire("B:1", 1500, lua.Again)
		ttl, err := b.do("PTTL", key).AsInt64()
		require.NoError(t, err)
		require.LessOrEqual(t, ttl, int64(5000))
		b.acquire("C:1", 100, lua.Again)
		ttl, err = b.do("PTTL", key).AsInt64()
		require.NoError(t, err)
		require.Greater(t, ttl, int64(5000))
	})
}

// An offer that is repeated after its first copy was queued, and granted by message: the lease is whole, in
// Redis too.
func TestOfferRepeatedAfterTheGrant(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.open("A")
		b.open("B")
		b.share("A:1", lua.First)
		b.share("B:1", lua.First)
		require.True(t, b.offer("A:1", "A:2", lua.First).Queued)
		require.True(t, b.release("B:1", ""))
		require.Contains(t, asMap(t, b.do("HGETALL", b.lock.Name()))["A:2"], "!")
		require.Positive(t, b.offer("A:1", "A:2", lua.Again).Token)
		require.NotContains(t, asMap(t, b.do("HGETALL", b.lock.Name()))["A:2"], "!")
	})
}
