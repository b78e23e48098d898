package lua_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

func (b *bench) move(from, to string, lease int64) lua.Acquired {
	b.t.Helper()
	a, err := b.conn.Move(b.t.Context(), b.lock, from, 0, lua.Claim{Owner: to, Lease: lease}, lua.Try)
	require.NoError(b.t, err)
	return a
}

// movable is what a move is tried with.
type movable struct {
	*bench
	take func(owner string) lua.Acquired
	give func(owner string) bool
	ends func(owner string) // waits for the end of a short lease
}

var movables = map[string]func(t *testing.T, s *redistest.Server) movable{
	"lock":  func(t *testing.T, s *redistest.Server) movable { return movableLock(newBench(t, s), false) },
	"write": func(t *testing.T, s *redistest.Server) movable { return movableLock(newRW(t, s), false) },
	"read":  func(t *testing.T, s *redistest.Server) movable { return movableLock(newRW(t, s), true) },
	"permits": func(t *testing.T, s *redistest.Server) movable {
		b := newSem(t, s, lua.Leased)
		b.set(3)
		return movable{
			b.bench, func(owner string) lua.Acquired { return b.take(owner, "3", lua.First) },
			func(owner string) bool { return b.give(owner, 0) }, b.expire,
		}
	},
}

func movableLock(b *bench, reads bool) movable {
	take := func(owner string) lua.Acquired { return b.acquire(owner, 60_000, lua.First) }
	if reads {
		take = func(owner string) lua.Acquired { return b.read(owner, lua.First) }
	}
	ends := func(string) {
		require.Eventually(b.t, func() bool { return b.inspect().Owner == "" }, 10*time.Second, 10*time.Millisecond)
	}
	return movable{b, take, func(owner string) bool { return b.release(owner, "") }, ends}
}

// What an owner has is another id's after that, with its token and a lease of its own. A copy changes nothing
// more, and what is still under way for the first id does nothing.
// Rule 49.
func TestMove(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, create := range movables {
			s.Run(t, name, func(t *testing.T) {
				require.NoError(t, s.Client(t).Do(t.Context(), s.Client(t).B().Flushall().Build()).Error())
				b := create(t, s)
				require.True(t, b.move("A:1", "A:2", 60_000).Gone, "nobody has it")
				first := b.take("A:1")
				require.Positive(t, first.Token)
				require.Equal(t, first.Token, b.move("A:1", "B:1", 50_000).Token)
				moved := b.move("A:1", "B:1", 50_000)
				require.Equal(t, first.Token, moved.Token, "a copy")
				if name == "permits" {
					require.EqualValues(t, 3, moved.Reserved)
				} else if name != "read" { // whose key lives as long as the longest lease that it had
					require.InDelta(t, 50_000, b.inspect().Ends, 9000)
				}
				require.True(t, b.move("A:1", "C:1", 50_000).Gone, "it has none any more")
				require.False(t, b.renew("A:1", 60_000))
				b.leave(t, "A:1")
				require.False(t, b.give("A:1"))
				require.True(t, b.renew("B:1", 50_000))

				late := lua.Claim{Owner: "C:1", Lease: 1000, Until: time.Now().Add(-time.Hour).UnixMicro()}
				reply, err := b.conn.Move(t.Context(), b.lock, "B:1", 0, late, lua.Try)
				require.NoError(t, err)
				require.True(t, reply.Late)
				require.True(t, b.renew("B:1", 50_000))

				one, err := b.conn.Move(t.Context(), b.lock, "B:1", first.Token+1, lua.Claim{Owner: "E:1", Lease: 50_000}, lua.Try)
				require.NoError(t, err)
				if name == "read" { // whose token is that of all who read
					require.Equal(t, first.Token, one.Token)
				} else {
					require.Equal(t, first.Token+1, one.Token, "that of a hold by a local hand-off")
				}
				require.Equal(t, one.Token, b.move("E:1", "C:1", 80).Token)
				b.ends("C:1")
				require.True(t, b.move("C:1", "D:1", 1000).Gone, "its lease is over")
			})
		}
	})
}

// Readers keep the lock beside one whose hold is moved, and permits beside others are counted as before.
// Rule 49.
func TestMoveBesideOthers(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.read("A:1", lua.First)
		b.read("A:2", lua.First)
		require.Positive(t, b.move("A:1", "B:1", 60_000).Token)
		require.EqualValues(t, 2, b.inspect().Shares)
		require.True(t, b.renew("A:2", 60_000))
		require.EqualValues(t, 0, b.number("EXISTS", b.timeout("A:1")))
		require.True(t, b.release("A:2", ""))
		require.True(t, b.acquire("C:1", 60_000, lua.First).Queued)
		require.True(t, b.release("B:1", ""))

		sem := newSem(t, s, lua.Leased)
		sem.set(1000)
		for n := range 3 {
			require.Positive(t, sem.take(fmt.Sprint("A:", n), "300", lua.First).Token)
		}
		require.EqualValues(t, 300, sem.move("A:1", "B:1", 60_000).Reserved)
		require.EqualValues(t, 100, sem.census().Free)
		require.Len(t, sem.permits("B:1"), 300)
		require.Empty(t, sem.permits("A:1"))
		require.Len(t, sem.permits("A:2"), 300)
	})
}

// Who waits is told when what is moved ends before the lease that it knows.
// Rule 49.
func TestMoveShortensALease(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		box := b.open("C")
		b.acquire("A:1", 60_000, lua.First)
		require.True(t, b.acquire("C:1", 60_000, lua.First).Queued)
		require.Positive(t, b.move("A:1", "B:1", 500).Token)
		require.Equal(t, lua.Message{Kind: lua.Ends, Number: 1, Lease: 500, Name: b.lock.Name()}, box.next(t))
	})
}

// What is no lock, and no semaphore, is left alone.
func TestMoveOfForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, create := range movables {
			b := create(t, s)
			key := b.lock.Name()
			if name == "permits" {
				key = b.lock.All()[6]
			}
			require.NoError(t, b.do("DEL", key).Error())
			require.NoError(t, b.do("SET", key, "x").Error())
			_, err := b.conn.Move(t.Context(), b.lock, "A:1", 0, lua.Claim{Owner: "B:1", Lease: 1000}, lua.Try)
			require.Equal(t, lua.WrongType, lua.Classify(err), name)
			require.NoError(t, b.do("DEL", key).Error())
		}
	})
}
