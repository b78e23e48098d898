package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func (b *bench) watch(owner string) (held, others bool) {
	b.t.Helper()
	held, others, err := b.conn.Watch(b.t.Context(), b.lock, owner, true)
	require.NoError(b.t, err)
	return held, others
}

// requireWatched checks that the owner has the lock, and that nobody is seen who waits for it.
func (b *bench) requireWatched(owner string) {
	b.t.Helper()
	held, others := b.watch(owner)
	require.True(b.t, held)
	require.False(b.t, others)
}

// An owner that asks is told of the first who queues, and of each attempt before that. The question finds
// what a lost message would have said, and changes neither token nor lease.
// Rule 48.
func TestWatchedLock(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		holder := b.open("A")
		b.open("B")
		held, _ := b.watch("A:1")
		require.False(t, held, "nobody has the lock")
		first := b.acquire("A:1", 60_000, lua.First)
		require.Zero(t, first.Reserved)
		b.requireWatched("A:1")
		value := b.value()
		b.requireWatched("A:1")
		require.Equal(t, value, b.value(), "it is repeated")
		require.Equal(t, first.Owned, b.acquire("A:1", 60_000, lua.Again).Owned)
		require.InDelta(t, 60_000, b.inspect().Ends, 5000)
		held, _ = b.watch("A:2")
		require.False(t, held, "another owner")

		require.True(t, b.acquire("B:7", 10_000, lua.Try).Lingers)
		require.Equal(t, lua.Attempt, holder.next(t).Kind)
		b.requireWatched("A:1")
		require.True(t, b.acquire("B:1", 10_000, lua.First).Queued)
		require.Equal(t, lua.Message{Kind: lua.Want, Number: 1, Name: b.lock.Name()}, holder.next(t))
		held, others := b.watch("A:1")
		require.True(t, held)
		require.True(t, others)
		require.True(t, b.release("A:1", ""))
		require.NotContains(t, b.value(), "l", "the next owner has not asked")
	})
}

// What an owner has of reserved tokens stays when it asks to be told, as does that its grant is not
// confirmed.
// Rule 48.
func TestWatchKeepsWhatTheOwnerHas(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		box := b.open("B")
		b.acquire("A:1", 60_000, lua.First)
		claim := lua.Claim{Owner: "B:1", Lease: 60_000, Longest: 1000, Demand: lua.Demand{Permits: 7}}
		require.True(t, b.claim(claim, lua.First).Queued)
		require.True(t, b.release("A:1", ""))
		granted := box.next(t).Owned
		require.EqualValues(t, 7, granted.Reserved)
		before := b.value()
		b.requireWatched("B:1")
		require.Contains(t, b.value(), "+7l/60000!")
		require.Equal(t, before[len(before)-17:], b.value()[len(b.value())-17:])
		require.Equal(t, granted, b.claim(claim, lua.Again).Owned)
	})
}

// The writer of a read-write lock hears of the first who queues once it has asked, and the next writer has
// not. Readers hear in any case.
// Rule 48.
func TestWatchedReadWriteLock(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		holder, next := b.open("A"), b.open("B")
		held, _ := b.watch("A:1")
		require.False(t, held)
		b.acquire("A:1", 60_000, lua.First)
		b.requireWatched("A:1")
		require.True(t, b.read("B:1", lua.First).Queued)
		require.Equal(t, lua.Message{Kind: lua.Want, Number: 1, Name: b.lock.Name()}, holder.next(t))
		held, others := b.watch("A:1")
		require.True(t, held)
		require.True(t, others)
		require.True(t, b.release("A:1", ""))
		require.Equal(t, lua.Grant, next.next(t).Kind)

		b.requireWatched("B:1")
		require.True(t, b.acquire("A:2", 60_000, lua.First).Queued)
		require.Equal(t, lua.Message{Kind: lua.Want, Number: 1, Name: b.lock.Name()}, next.next(t))
		require.True(t, b.release("B:1", ""))
		require.Equal(t, lua.Grant, holder.next(t).Kind)
		require.True(t, b.acquire("B:2", 60_000, lua.First).Queued)
		b.expectNone("A")
	})
}

// Waiters of Redisson are seen by what they listen to, unless those do not count.
// Rule 48.
func TestWatchSeesWhoListens(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for channel, b := range map[string]*bench{"redisson_lock__channel:": newBench(t, s), "redisson_rwlock:": newRW(t, s)} {
			b.acquire("A:1", 60_000, lua.First)
			b.requireWatched("A:1")
			stop := b.subscribe(channel+b.lock.Name(), func(string) {})
			held, others := b.watch("A:1")
			require.True(t, held)
			require.True(t, others)
			_, others, err := b.conn.Watch(t.Context(), b.lock, "A:1", false)
			require.NoError(t, err)
			require.False(t, others)
			stop()
			require.True(t, b.release("A:1", ""))
		}
	})
}

// What is no lock is left alone.
func TestWatchOfForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		require.NoError(t, b.do("SET", b.lock.Name(), "x").Error())
		_, _, err := b.conn.Watch(t.Context(), b.lock, "A:1", true)
		require.Equal(t, lua.WrongType, lua.Classify(err))
		b = newRW(t, s)
		_, _, err = b.conn.Watch(t.Context(), b.lock, "A:1", true)
		require.Equal(t, lua.WrongType, lua.Classify(err))
	})
}
