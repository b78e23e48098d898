package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// claimLinger is what an owner asks for that may linger.
func claimLinger(owner string) lua.Claim {
	return lua.Claim{Owner: owner, Lease: 60_000, Longest: 1000, Demand: lua.Demand{Permits: 5000, Lingers: true}}
}

func (b *bench) linger(owner string, mode lua.Mode) lua.Acquired {
	b.t.Helper()
	a, err := b.conn.Acquire(b.t.Context(), b.lock, claimLinger(owner), 0, mode)
	require.NoError(b.t, err)
	return a
}

// value is what the lock says of its owner.
func (b *bench) value() (value string) {
	b.t.Helper()
	held := asMap(b.t, b.do("HGETALL", b.lock.Name()))
	require.Len(b.t, held, 1)
	for _, value = range held {
	}
	return value
}

// An owner that may linger says so, however it became the owner, and has tokens from the first acquire on.
// Rule 40.
func TestLingerIsMarked(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		box := b.open("B")
		first := b.linger("A:1", lua.First)
		require.EqualValues(t, 5000, first.Reserved)
		require.False(t, first.Others)
		require.Contains(t, b.value(), "+5000l/60000")
		require.True(t, b.inspect().MayLinger)
		require.Zero(t, b.inspect().Shares)
		require.Equal(t, first.Owned, b.linger("A:1", lua.Again).Owned, "a repeated acquire returns the same")

		kept, err := b.conn.Offer(t.Context(), b.lock, "A:1", "", 5000, claimLinger("A:2"), 0, lua.First)
		require.NoError(t, err)
		require.Greater(t, kept.Token, first.Token)
		require.Contains(t, b.value(), "l/60000", "an offer keeps it")

		b.linger("B:1", lua.First)
		require.True(t, b.release("A:2", ""))
		require.Equal(t, lua.Grant, box.next(t).Kind)
		require.Contains(t, b.value(), "l/60000", "so does a grant")
		require.True(t, b.release("B:1", ""))

		b.acquire("A:3", 60_000, lua.First)
		require.NotContains(t, b.value(), "l")
		require.False(t, b.inspect().MayLinger)
	})
}

// Who queues first behind an owner that may linger tells it, also when it has no tokens left.
// Rule 40.
func TestWantIsToldToWhoLingers(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		holder := b.open("A")
		b.open("B")
		claim := claimLinger("A:1")
		claim.Permits = 0
		a, err := b.conn.Acquire(t.Context(), b.lock, claim, 0, lua.First)
		require.NoError(t, err)
		require.Zero(t, a.Reserved)
		require.True(t, b.acquire("B:1", 10_000, lua.First).Queued)
		require.Equal(t, lua.Message{Kind: lua.Want, Number: 1, Name: b.lock.Name()}, holder.next(t))
	})
}

// An attempt tells an owner that may linger who asks. It does not where nobody would answer, where others are
// next, and inside of the owner's client.
// Rule 40.
func TestAttemptAtALockThatMayLinger(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		holder := b.open("A")
		b.linger("A:1", lua.First)
		asks := func(owner string, want bool) {
			t.Helper()
			a := b.acquire(owner, 10_000, lua.Try)
			require.Equal(t, want, a.Lingers)
			require.False(t, a.Queued)
			require.Zero(t, a.Token)
		}
		asks("B:7", true)
		require.Equal(t, lua.Message{Kind: lua.Attempt, Number: 1, Asker: "B:7", Name: b.lock.Name()}, holder.next(t))
		require.Empty(t, b.inspect().Queue)
		asks("A:2", false)
		b.open("C")
		b.acquire("C:1", 10_000, lua.First)
		require.Equal(t, lua.Want, holder.next(t).Kind)
		asks("B:8", false)
		b.expectNone("A")
		require.False(t, b.release("C:1", b.inspect().Queue[0]))
		holder.close()
		asks("B:9", false)

		b.open("D")
		require.True(t, b.release("A:1", ""))
		b.acquire("D:1", 10_000, lua.First)
		asks("B:10", false)
	})
}
