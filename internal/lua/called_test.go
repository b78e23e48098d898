package lua_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// After a grant to which a client did not react all others that wait are called. At the next such grant those are
// dropped that were called a second ago or more, and have not asked since. The others keep their places.
// Rule 5.
func TestCalledWaiters(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		pool := newSem(t, s, lua.Leased)
		locks := newBench(t, s)
		for _, family := range []struct {
			*bench
			ask   func(owner string, mode lua.Mode) lua.Acquired
			entry func(owner string) string
			over  func(owner string) // the short lease of an owner is over
			free  func(owner string)
		}{
			{
				locks, func(owner string, mode lua.Mode) lua.Acquired { return locks.acquire(owner, 60_000, mode) },
				func(owner string) string { return entry(owner, 60_000) },
				func(owner string) {
					value, err := locks.do("HGET", locks.lock.Name(), owner).ToString()
					require.NoError(t, err)
					value, at, _ := strings.Cut(value, "!")
					granted, err := strconv.ParseInt(at, 10, 64)
					require.NoError(t, err, "a message granted it")
					require.NoError(t, locks.do("HSET", locks.lock.Name(), owner, fmt.Sprint(value, "!", granted-2_100_000)).Error())
				},
				func(owner string) { require.True(t, locks.release(owner, "")) },
			},
			{
				pool.bench, func(owner string, mode lua.Mode) lua.Acquired { return pool.take(owner, "1", mode) },
				func(owner string) string { return request(owner, "1").Entry() },
				pool.expire,
				func(owner string) { require.True(t, pool.give(owner, 0)) },
			},
		} {
			b := family.bench
			require.NoError(t, b.do("FLUSHALL").Error())
			if b == pool.bench {
				pool.set(1)
			}
			called := strings.Replace(b.lock.All()[1], "queue", "called", 1)
			queue := func(want ...string) {
				t.Helper()
				all, err := b.do("LRANGE", b.lock.All()[1], "0", "-1").AsStrSlice()
				require.NoError(t, err)
				var entries []string
				for _, owner := range want {
					entries = append(entries, family.entry(owner))
				}
				require.Equal(t, append([]string{}, entries...), append([]string{}, all...))
			}
			for _, client := range []string{"D", "E", "F", "G", "L", "M"} {
				b.open(client)
			}
			next := func(client string) lua.Message {
				t.Helper()
				m := b.inbox[client].next(t)
				for m.Kind == lua.Want { // of who passes permits on
					m = b.inbox[client].next(t)
				}
				require.Equal(t, b.lock.Name(), m.Name)
				return m
			}
			pings := 0
			quiet := func(client string) { // it was sent nothing else so far
				t.Helper()
				pings++
				require.NoError(t, b.do("PUBLISH", b.lock.Inbox(client), fmt.Sprint("1 p ", pings)).Error())
				m := b.inbox[client].next(t)
				for m.Kind == lua.Want {
					m = b.inbox[client].next(t)
				}
				require.Equal(t, lua.Ping, m.Kind)
			}
			require.Positive(t, family.ask("A:1", lua.First).Token)
			for _, owner := range []string{"D:1", "E:1", "F:1", "L:1", "F:2", "L:2", "G:1", "M:1"} {
				require.True(t, family.ask(owner, lua.First).Queued)
			}
			family.free("A:1")
			require.Equal(t, lua.Grant, next("D").Kind)

			family.over("D:1")
			require.True(t, family.ask("M:1", lua.Again).Queued)
			require.Equal(t, lua.Grant, next("E").Kind)
			queue("F:1", "L:1", "F:2", "L:2", "G:1", "M:1")
			for client, number := range map[string]uint64{"F": 1, "L": 1, "G": 1} {
				m := next(client)
				require.Equal(t, lua.Ask, m.Kind, client)
				require.Equal(t, number, m.Number, "its first")
			}
			quiet("M") // it has asked
			require.Zero(t, family.ask("L:2", lua.Again).Sequence, "L reacts, and is queued")

			family.over("E:1")
			require.True(t, family.ask("M:1", lua.Again).Queued)
			require.Equal(t, lua.Grant, next("F").Kind, "it was called a moment ago, and has time")
			queue("L:1", "F:2", "L:2", "G:1", "M:1")
			quiet("G") // nor is it called again

			require.EqualValues(t, 1, b.number("PEXPIRE", called, "58900"))
			family.over("F:1")
			require.True(t, family.ask("M:1", lua.Again).Queued)
			require.Equal(t, lua.Grant, next("L").Kind, "what F and G have queued is gone")
			queue("L:2", "M:1")
			require.Equal(t, lua.Ask, next("L").Kind)

			require.EqualValues(t, 1, b.number("PEXPIRE", called, "58900"))
			require.Positive(t, family.ask("G:1", lua.Again).Sequence, "it lives after all, and queues again")
			require.Equal(t, family.ask("L:1", lua.Again).Token, family.ask("L:1", lua.First).Token)
			family.free("L:1")
			require.Equal(t, lua.Grant, next("L").Kind)
			family.over("L:2")
			require.Positive(t, family.ask("M:1", lua.Again).Token)
			queue("G:1")
			require.Equal(t, lua.Ask, next("G").Kind)

			// Another one of G's has been queued since it was called. What it was called for is not there any more.
			require.NoError(t, b.do("DEL", b.lock.All()[1]).Error())
			require.True(t, family.ask("E:2", lua.First).Queued)
			require.True(t, family.ask("G:2", lua.First).Queued)
			require.EqualValues(t, 1, b.number("PEXPIRE", called, "58900"))
			family.free("M:1")
			require.Equal(t, lua.Grant, next("E").Kind)
			family.over("E:2")
			require.Zero(t, family.ask("M:2", lua.Try).Token)
			require.Equal(t, lua.Grant, next("G").Kind)
		}
	})
}

// Foreign data under the key of the called clients says nothing, and is in the way of nothing.
func TestCalledOfForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		for _, client := range []string{"F", "G"} {
			b.open(client)
		}
		for _, wrong := range [][]string{{"SET", "x"}, {"RPUSH", "x"}, {"HSET", "G", "x"}, {"HSET", "", ""}} {
			require.NoError(t, b.do("FLUSHALL").Error())
			called := strings.Replace(b.lock.All()[1], "queue", "called", 1)
			require.NoError(t, b.do(append([]string{wrong[0], called}, wrong[1:]...)...).Error())
			b.acquire("A:1", 60_000, lua.First)
			for _, owner := range []string{"F:1", "F:2", "G:1"} {
				require.True(t, b.acquire(owner, 60_000, lua.First).Queued)
			}
			require.True(t, b.release("A:1", ""))
			require.Equal(t, lua.Grant, b.inbox["F"].next(t).Kind)
			require.NoError(t, b.do("HSET", b.lock.Name(), "F:1", "t5/60000!5").Error())
			require.Positive(t, b.acquire("G:1", 60_000, lua.Again).Token)
			require.Zero(t, b.inspect().Length)
		}
	})
}
