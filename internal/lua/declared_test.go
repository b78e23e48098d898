package lua_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// declares has a bench declare all keys.
func (b *bench) declares() {
	b.conn.Declares = new(atomic.Bool)
	b.conn.Declares.Store(true)
}

// demands checks that a script asks for the key with an end, when its call declares these.
func (b *bench) demands(end, script string, keys []string, args ...string) {
	b.t.Helper()
	command := b.conn.Client.B().Eval().Script(script).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	err := b.conn.Client.Do(b.t.Context(), command).Error()
	require.ErrorContains(b.t, err, "LATCHKEY_UNDECLARED "+end+" .")
}

// Dragonfly reads in the first line of a script that it may use keys which were not declared. What stands
// before a script of the user's says nothing about that script.
func TestDragonflyIsTold(t *testing.T) {
	for name, texts := range lua.Composed() {
		for _, text := range texts {
			require.Equal(t, name != "fence/eval", strings.HasPrefix(text, "--!df flags=allow-undeclared-keys\n"), name)
		}
	}
}

// A script of a read-write lock asks for the leases of those who read, and of those who wait to, and writes
// nothing before it can look at them.
// Rule 52.
func TestLeasesOfReadersAreDemanded(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("B")
		b.open("C")
		b.read("A:1", lua.First)
		b.demands("A:1:rwlock_timeout:1", lua.Texts(b.lock)["acquire"], b.lock.All(), "B:1", "0000000000000000 ", "60000", "first", "0")
		require.Zero(t, b.number("EXISTS", b.lock.All()[1]), "nobody is queued")

		b.declares()
		require.True(t, b.acquire("B:1", 60_000, lua.First).Queued)
		require.True(t, b.read("C:1", lua.First).Queued)
		require.True(t, b.release("A:1", ""))
		writes := b.inbox["B"].next(t)
		require.True(t, b.release("B:1", ""))
		reads := b.inbox["C"].next(t)
		require.Greater(t, reads.Token, writes.Token)
		require.EqualValues(t, 1, b.number("EXISTS", b.timeout("C:1")))
		require.True(t, b.renew("C:1", 60_000))
		require.True(t, b.release("C:1", ""))
		require.Zero(t, b.number("EXISTS", b.timeout("C:1"), b.lock.Name()))
	})
}

// A reader whose lease nobody could look at is taken for one that reads, and a lease that is over is seen
// with the next question.
// Rule 52.
func TestReaderIsGone(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("B")
		b.declares()
		b.read("A:1", lua.First)
		require.True(t, b.acquire("B:1", 60_000, lua.First).Queued)
		require.NoError(t, b.do("DEL", b.timeout("A:1")).Error())
		require.Positive(t, b.acquire("B:1", 60_000, lua.Again).Token)
	})
}

// A script of plain permits asks for what was recorded of those who wait, and writes nothing before.
// Rule 52.
func TestRecordsOfWaitersAreDemanded(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Plain)
		b.open("B")
		b.set(1)
		b.declares()
		require.Positive(t, b.take("A:1", "1", lua.First).Token)
		require.True(t, b.take("B:1", "1", lua.First).Queued)
		keys := b.lock.All()
		trade := lua.Texts(b.lock)["trade"]
		b.demands("B:1", trade, append(keys, keys[4]+":A:1"), "A:1", "0000000000000000 ", "100", "", "give", "A:1", "", "0", "")
		require.EqualValues(t, 1, b.number("EXISTS", keys[4]+":A:1"), "nothing was given back")
		require.True(t, b.give("A:1", 0))
		b.inbox["B"].next(t)
		require.False(t, b.give("A:1", 0), "once")
		require.EqualValues(t, 0, b.census().Free)
		require.True(t, b.give("B:1", 0))
		require.EqualValues(t, 1, b.census().Free)
	})
}

// A script of a barrier asks for what is recorded of members that are dead, before it says so.
// Rule 52.
func TestRecordsOfTheDeadAreDemanded(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.declares()
		k, err := lua.NewKeys(lua.Barrier, "barrier", false)
		require.NoError(t, err)
		joined, _, err := b.conn.JoinBarrier(t.Context(), k, lua.Once{ID: "A:1"}, 60_000)
		require.NoError(t, err)
		require.True(t, joined)
		require.NoError(t, b.do("ZADD", k.All()[3], "XX", "1", "A:1").Error())
		b.demands("A:1", lua.Composed()["barrier/attend"][0], k.All(), "B", "60000", "0", "0", "", "0")
		require.EqualValues(t, 1, b.number("ZCARD", k.All()[3]), "it is a member still")
		round, err := b.conn.Attend(t.Context(), k, lua.Attendance{Client: "B", Lease: 60_000})
		require.NoError(t, err)
		require.Equal(t, lua.Broken, round.Phase)
		require.EqualValues(t, 1, b.number("EXISTS", k.All()[2]+":A:1"))
	})
}

// Many who give back at the same time, on a server that wants all keys declared, ask once for the records of
// all who wait: also when nearly all of those are dead.
// Rule 52.
func TestCrowdIsDemandedAtOnce(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for name, crowd := range map[string]struct{ alive, dead int }{"alive": {64, 0}, "dead": {1, 4500}} {
			s.Run(t, name, func(t *testing.T) {
				b := newSem(t, s, lua.Plain)
				require.NoError(t, b.do("FLUSHALL").Error())
				b.open("B")
				b.set(1)
				b.declares()
				require.Positive(t, b.take("A:1", "1", lua.First).Token)
				for start := 0; start < crowd.dead; start += 500 {
					entries := []string{"RPUSH", b.lock.All()[1]}
					for n := range 500 {
						entries = append(entries, fmt.Sprintf("1:dead:%d:60000:1", start+n))
					}
					require.NoError(t, b.do(entries...).Error())
				}
				var puts []lua.Request
				for n := range crowd.alive {
					require.NoError(t, b.do("RPUSH", b.lock.All()[1], fmt.Sprintf("1:B:%d:60000:1", n)).Error())
					puts = append(puts, lua.Put(fmt.Sprint("A:", n+2), 1))
				}
				replies, err := b.conn.Trade(t.Context(), b.lock, 0, 100_000, "", puts...)
				require.NoError(t, err)
				require.Len(t, replies, crowd.alive)
				for range crowd.alive {
					b.inbox["B"].next(t)
				}
				require.Zero(t, b.census().Free)
			})
		}
	})
}

// A turn of ours is counted once, though a script asks for keys first.
// Rule 52.
func TestTurnIsCountedOnce(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		p := newSem(t, s, lua.Plain)
		b := takesTurns(p.bench)
		box := p.open("B")
		p.set(1)
		p.declares()
		require.Positive(t, p.take("A:1", "1", lua.First).Token)
		require.True(t, p.take("B:1", "1", lua.First).Queued)
		b.theyWait()
		require.NoError(t, b.do("SET", "latchkey_turns:{sem}", "3", "PX", "60000").Error())
		p.trade(lua.Put("A:10", 1))
		for m := box.next(t); m.Kind != lua.Grant; m = box.next(t) {
			require.Equal(t, lua.Want, m.Kind, "others wait")
		}
		require.EqualValues(t, 2, b.number("GET", "latchkey_turns:{sem}"))
	})
}

// Half of a slot has moved: a reader is renewed for as long as it was, and no key that its call has named is
// taken for another one.
// Rule 52.
func TestDeclaredRenewalWhileASlotMoves(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	b := inSlot(t, c, "declared")
	b.read("A:1", lua.First)
	b.share("B:1", lua.First)
	b.declares()
	m := c.Move(t, "declared")
	m.Key(t, b.lock.All()[3])
	require.True(t, b.renew("A:1", 60_000))
	require.InDelta(t, 60_000, b.number("PTTL", "{declared}:A:1:rwlock_timeout:1"), 10_000)
}

// An Inspect that may not look at a reader's lease takes it for one that reads: the lock is not free.
// Rule 52.
func TestInspectNamesAReaderItCannotSee(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.read("A:1", lua.First)
		keys := append(b.lock.All(), b.lock.Name()) // the last of a row of calls: see shared/declared.lua
		command := b.conn.Client.B().Eval().Script(lua.Texts(b.lock)["inspect"]).Numkeys(int64(len(keys))).Key(keys...).Arg("0").Build()
		reply, err := b.conn.Client.Do(t.Context(), command).ToArray()
		require.NoError(t, err)
		owner, err := reply[0].ToString()
		require.NoError(t, err)
		require.Equal(t, "A:1", owner)
	})
}
