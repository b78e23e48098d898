package lua_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// The rest of a shortest hold belongs to nobody that could renew or cancel it. It lasts as long as it should,
// also if that is longer than the lease.
func TestRestOfEitherHalf(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, shared := range []bool{true, false} {
			b := newRW(t, s)
			require.NoError(t, b.do("FLUSHALL").Error())
			box := b.open("B")
			claim, field := lua.Claim{Owner: "A:1", Lease: 10_000, Demand: lua.Demand{Shared: shared}, Longest: 10}, "A:1:rest:write"
			if shared {
				field = "A:1:rest"
			}
			require.Positive(t, b.claim(claim, lua.First).Token)
			require.True(t, b.acquire("B:1", 10_000, lua.First).Queued)
			rest := func(ms int64) bool {
				owned, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "A:1", Entry: claim.Entry(), Rest: ms}, 0)
				require.NoError(t, err)
				return owned
			}
			require.True(t, rest(50_000))
			require.False(t, rest(50_000), "repeated")
			hint := box.next(t)
			require.Equal(t, lua.Ends, hint.Kind)
			require.EqualValues(t, 50_000, hint.Lease)
			require.Equal(t, field, b.inspect().Owner)
			require.False(t, b.release("A:1", claim.Entry()), "a late cancel does not end it")
			require.False(t, b.renew("A:1", 60_000), "a late renewal does not extend it")
			require.InDelta(t, 50_000, b.acquire("B:1", 10_000, lua.Again).Ends, 1000)
			require.InDelta(t, 50_000, b.acquire("C:1", 10_000, lua.Try).Ends, 1000)
			if shared {
				require.Positive(t, b.number("PEXPIRE", b.lock.Name()+":A:1:rest:rwlock_timeout:1", "20"))
			} else {
				require.Positive(t, b.number("PEXPIRE", b.lock.Name(), "20"))
			}
			require.Eventually(t, func() bool { return b.acquire("B:1", 10_000, lua.Again).Token > 0 }, 5*time.Second, time.Millisecond)
			require.Equal(t, map[string]string{"mode": "write", "B:1:write": "1"}, b.fields())
		}
	})
}

// A downgrade lets the readers at the head of the queue join, and no writer in between.
// Rule 31.
func TestDowngrade(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"A", "R", "W"} {
			b.open(client)
		}
		first := b.share("A:1", lua.First)
		require.True(t, b.read("R:1", lua.First).Queued)
		require.True(t, b.share("W:1", lua.First).Queued)
		require.True(t, b.read("R:2", lua.First).Queued)
		held, others := b.downgrade("A:1")
		require.True(t, held)
		require.True(t, others, "a writer waits")
		require.Equal(t, first.Token, b.granted("R", 1).Token)
		require.Equal(t, map[string]string{"mode": "read", "A:1": "1", "R:1": "1"}, b.fields())
		require.InDelta(t, 60_000, b.number("PTTL", b.timeout("A:1")), 500)
		require.Equal(t, first.Token, b.inspect().Token, "it reads what it wrote")
		state := b.inspect()
		held, others = b.downgrade("A:1")
		require.True(t, held, "repeated")
		require.True(t, others)
		require.Equal(t, state.Queue, b.inspect().Queue)
		b.expectNone("R")
		b.expectNone("W")

		require.True(t, b.release("R:1", ""))
		require.True(t, b.release("A:1", ""))
		b.granted("W", 1)
		held, _ = b.downgrade("A:1")
		require.False(t, held, "a copy that comes after the release does nothing")
		require.Equal(t, map[string]string{"mode": "write", "W:1:write": "1"}, b.fields())
		require.True(t, b.release("W:1", ""))
		b.granted("R", 2)
		require.True(t, b.release("R:2", ""))
		held, others = b.downgrade("A:1")
		require.False(t, held)
		require.False(t, others)
		b.noTrace()
	})
}

// A writer that was granted the lock by message and is a reader before its first renewal has reacted.
func TestDowngradeBeforeTheFirstRenewal(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("B")
		b.share("A:1", lua.First)
		require.True(t, b.share("B:1", lua.First).Queued)
		require.True(t, b.release("A:1", ""))
		m := b.granted("B", 1)
		held, others := b.downgrade("B:1")
		require.True(t, held)
		require.False(t, others)
		require.Equal(t, m.Token, b.inspect().Token, "of what was reserved nothing is used any more")
		b.open("R")
		require.Equal(t, m.Token, b.read("R:1", lua.First).Token, "all who read have one token")
		require.InDelta(t, 60_000, b.number("PTTL", b.lock.Name()), 500)
		require.Empty(t, asMap(t, b.do("HGETALL", b.lock.All()[3]))["short"])
	})
}

// ForceUnlock of one half takes the lock from that half alone. It says up to which token.
// Rule 32.
func TestForceOfEitherHalf(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"A", "B", "W"} {
			b.open(client)
		}
		require.False(t, b.force(true), "nobody holds it")
		require.False(t, b.force(false))
		first := b.read("A:1", lua.First)
		b.read("B:1", lua.First)
		require.False(t, b.force(false), "no writer")
		require.EqualValues(t, 2, b.inspect().Shares)
		require.True(t, b.force(true))
		for _, client := range []string{"A", "B"} {
			m := b.inbox[client].next(t)
			require.Equal(t, lua.Forced, m.Kind)
			require.EqualValues(t, 1, m.Number)
			require.Equal(t, first.Token, m.Token)
		}
		b.noTrace()
		require.False(t, b.renew("A:1", 60_000))
		later := b.read("A:2", lua.First)
		require.Greater(t, later.Token, first.Token, "the message does not concern who comes later")

		require.True(t, b.share("W:1", lua.First).Queued)
		require.Equal(t, lua.Want, b.inbox["A"].next(t).Kind)
		require.True(t, b.read("B:2", lua.First).Queued)
		require.True(t, b.force(true))
		m := b.inbox["A"].next(t)
		require.Equal(t, lua.Forced, m.Kind)
		require.Equal(t, later.Token, m.Token)
		m = b.granted("W", 1)
		require.Greater(t, m.Token, later.Token)
		require.False(t, b.force(true), "nobody reads")
		require.Equal(t, "W:1:write", b.inspect().Owner)
		require.True(t, b.force(false))
		forced := b.inbox["W"].next(t)
		require.Equal(t, lua.Forced, forced.Kind)
		require.Equal(t, m.Token+m.Reserved, forced.Token, "with what its process may have used")
		require.Greater(t, b.granted("B", 2).Token, forced.Token)
		require.True(t, b.release("B:2", ""))
		b.noTrace()
	})
}

// An id that is queued a second time, by a copy of its acquire, may be granted the lock again when it is
// taken away.
func TestForceGrantsToTheSameId(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, shared := range []bool{true, false} {
			b := newRW(t, s)
			require.NoError(t, b.do("FLUSHALL").Error())
			b.open("A")
			claim, field := lua.Claim{Owner: "A:1", Lease: 10_000, Demand: lua.Demand{Shared: shared}, Longest: 10}, "A:1:write"
			if shared {
				field = "A:1"
			}
			require.Positive(t, b.claim(claim, lua.First).Token)
			require.NoError(t, b.do("RPUSH", b.lock.All()[1], claim.Entry()).Error())
			require.True(t, b.force(shared))
			require.Equal(t, "1", b.fields()[field])
			require.Equal(t, field, b.inspect().Owner)
			require.True(t, b.release("A:1", claim.Entry()))
			b.noTrace()
		}
	})
}

// All clients that read hear that somebody waits, and again with each question of the first who waits.
// Rule 29.
func TestReadersHearThatOthersWait(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"A", "B", "W"} {
			b.open(client)
		}
		want := func(clients ...string) {
			t.Helper()
			for _, client := range clients {
				m := b.inbox[client].next(t)
				require.Equal(t, lua.Want, m.Kind)
				require.EqualValues(t, 1, m.Number)
			}
			b.expectNone("A")
			b.expectNone("B")
		}
		b.read("A:1", lua.First)
		b.read("B:1", lua.First)
		require.True(t, b.share("W:1", lua.First).Queued)
		want("A", "B")
		require.True(t, b.share("W:2", lua.First).Queued)
		want()
		require.True(t, b.read("C:1", lua.First).Queued)
		want()
		b.share("W:2", lua.Again)
		want()
		b.share("W:1", lua.Again)
		want("A", "B")
		require.True(t, b.release("A:1", ""))
		b.share("W:1", lua.Again)
		want("B")
	})
}

// A writer's process that hands on inside is told once; another one not at all.
func TestWriterHearsThatOthersWait(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		box := b.open("A")
		b.share("A:1", lua.First) // nothing was reserved for it: nobody waited
		require.True(t, b.read("B:1", lua.First).Queued)
		b.expectNone("A")
		require.False(t, b.release("B:1", reads("B:1").Entry()))
		a := b.offer("A:1", "A:2", lua.First)
		require.Positive(t, a.Token)
		require.Positive(t, a.Reserved)
		require.False(t, a.Others)
		require.True(t, b.read("B:2", lua.First).Queued)
		m := box.next(t)
		require.Equal(t, lua.Want, m.Kind)
		require.EqualValues(t, 2, m.Number)
		require.True(t, b.share("A:2", lua.Again).Others)
		b.read("B:2", lua.Again)
		b.expectNone("A")
	})
}

// An offer of a writer goes to a run of readers, or to a writer, and queues behind them.
func TestOfferToReaders(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"A", "R"} {
			b.open(client)
		}
		b.share("A:1", lua.First)
		kept := b.offer("A:1", "A:2", lua.First)
		require.Positive(t, kept.Token)
		require.True(t, b.read("R:1", lua.First).Queued)
		require.True(t, b.read("R:2", lua.First).Queued)
		b.inbox["A"].next(t) // somebody waits
		a := b.offer("A:2", "A:3", lua.First)
		require.True(t, a.Queued)
		var readers int64 // their token
		for _, n := range []uint64{1, 2} {
			m := b.granted("R", n)
			require.Greater(t, m.Token, kept.Token+kept.Reserved)
			readers = cmp.Or(readers, m.Token)
			require.Equal(t, readers, m.Token, "they read together")
			require.True(t, m.Others, "the process that offers waits for its next turn")
			require.Greater(t, a.Sequence, m.Token)
		}
		require.True(t, b.offer("A:2", "A:3", lua.First).Gone, "a copy that comes late")
		require.Equal(t, []string{shared("A:3").Entry()}, b.inspect().Queue)
		require.True(t, b.release("R:1", ""))
		require.True(t, b.release("R:2", ""))
		require.Greater(t, b.granted("A", 3).Token, a.Sequence)
	})
}

// Tokens go on from what the caller has seen, and from what the key holds, in both halves.
// Rule 32.
func TestTokensOfBothHalvesGrow(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		acquire := func(claim lua.Claim, seen int64) int64 {
			t.Helper()
			a, err := b.conn.Acquire(t.Context(), b.lock, claim, seen, lua.Try)
			require.NoError(t, err)
			require.Positive(t, a.Token)
			require.True(t, b.release(claim.Owner, ""))
			return a.Token
		}
		ahead := time.Now().Add(time.Hour).UnixMicro()
		require.Equal(t, ahead+1, acquire(reads("A:1"), ahead), "never below what this client has seen")
		require.Equal(t, ahead+2, acquire(reads("B:1"), 0), "nobody reads any more")
		require.Equal(t, ahead+3, acquire(shared("A:1"), 0))
		require.NoError(t, b.do("DEL", b.lock.All()[3]).Error())
		require.Equal(t, ahead+4, acquire(reads("A:1"), 0))
		require.NoError(t, b.do("DEL", b.lock.All()[2]).Error())
		require.Less(t, acquire(reads("A:1"), 0), ahead, "by the clock, since nothing is known")
		require.Equal(t, ahead+5, acquire(shared("A:1"), ahead+4))
		for _, key := range b.lock.All()[2:] {
			require.InDelta(t, 24*time.Hour.Milliseconds(), b.number("PTTL", key), 5000)
		}
	})
}
