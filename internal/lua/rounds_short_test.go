package lua_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// rounds is a latch or a barrier on a server.
type rounds struct {
	t    *testing.T
	conn lua.Conn
	all  []string // the keys
	keys *lua.Keys
}

func newRounds(t *testing.T, s *redistest.Server, family lua.Family) *rounds {
	keys, err := lua.NewKeys(family, "round", false)
	require.NoError(t, err)
	return &rounds{t, lua.Conn{Client: s.Client(t)}, keys.All(), keys}
}

func (b *rounds) do(args ...string) rueidis.RedisResult {
	b.t.Helper()
	r := b.conn.Client.Do(b.t.Context(), b.conn.Client.B().Arbitrary(args...).Build())
	if err := r.Error(); err != nil {
		require.True(b.t, rueidis.IsRedisNil(err), "%v: %v", args, err)
	}
	return r
}

func (b *rounds) number(args ...string) int64 {
	b.t.Helper()
	n, err := b.do(args...).AsInt64()
	require.NoError(b.t, err)
	return n
}

func (b *rounds) text(args ...string) string {
	b.t.Helper()
	s, _ := b.do(args...).ToString()
	return s
}

func (b *rounds) dump() map[string]string { return dump(b.t, b.conn.Client) }

func (b *rounds) shut(id string, count, ttl int64) {
	b.t.Helper()
	b.do("FLUSHALL")
	done, err := b.conn.Arm(b.t.Context(), b.keys, lua.Once{ID: id}, count, ttl, true)
	require.NoError(b.t, err)
	require.True(b.t, done)
}

func (b *rounds) count(once lua.Once, n int64, participant string) lua.Counted {
	b.t.Helper()
	counted, err := b.conn.Count(b.t.Context(), b.keys, once, n, participant)
	require.NoError(b.t, err)
	return counted
}

// The short way of a count leaves the record, and does not take what it is not for.
func TestShortCount(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRounds(t, s, lua.Latch)
		name, record, done := b.all[0], b.all[1], b.all[2]
		for _, ttl := range []int64{0, 60_000} {
			b.shut("A:1", 5, ttl)
			for range 2 { // the second is a copy
				require.Equal(t, lua.Counted{Done: true, Remain: 3}, b.count(lua.Once{ID: "A:2", Answered: "1 "}, 2, ""))
				require.Zero(t, b.number("EXISTS", done+":A:1"), "what was answered is forgotten")
			}
			require.Equal(t, "3", b.text("GET", name))
			require.InDelta(t, 600_000, b.number("PTTL", done+":A:2"), 5000)
			require.Equal(t, lua.Counted{Done: true, Remain: 2}, b.count(lua.Once{ID: "A:3"}, 1, "p"))
			require.Equal(t, lua.Counted{Before: true, Remain: 2}, b.count(lua.Once{ID: "A:4"}, 1, "p"))
			require.Equal(t, lua.Counted{Remain: 2}, b.count(lua.Once{ID: "A:5"}, 3, ""))
			require.Equal(t, lua.Counted{Done: true}, b.count(lua.Once{ID: "A:6"}, 2, ""))
			require.Equal(t, lua.Counted{Phase: lua.Open}, b.count(lua.Once{ID: "A:7"}, 1, ""))
		}

		b.shut("A:1", 5, 60_000)
		b.do("HSET", record, "until", fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()))
		require.True(t, b.count(lua.Once{ID: "A:2"}, 1, "").Done)
		require.InDelta(t, time.Now().Add(time.Minute).UnixMilli(), b.number("HGET", record, "until"), 5000, "it is cut")
		b.do("HSET", record, "until", fmt.Sprint(time.Now().UnixMilli()-1))
		require.Equal(t, lua.Counted{Phase: lua.Expired}, b.count(lua.Once{ID: "A:3"}, 1, ""))

		b.shut("A:1", 5, 0)
		b.do("HSET", record, "bad", "12l 13d ")
		require.True(t, b.count(lua.Once{ID: "A:2"}, 1, "").Done)
		for _, absurd := range [][]string{
			{"HSET", record, "bad", "12l 13"}, {"HSET", record, "generation", "179541074229305x"}, {"HSET", record, "until", "-1"},
			{"HSET", record, "ttl", "x"}, {"SET", name, "1.5"},
		} {
			b.shut("A:1", 5, 0)
			b.do(absurd...)
			before := b.dump()
			_, err := b.conn.Count(t.Context(), b.keys, lua.Once{ID: "A:2"}, 1, "")
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", absurd, err)
			require.Equal(t, before, b.dump(), "%v", absurd)
		}
		b.shut("A:1", 9007199254740993001, 0)
		require.Equal(t, lua.Counted{Done: true, Remain: 9007199254740993000}, b.count(lua.Once{ID: "A:2"}, 1, ""), "it is exact")
	})
}

func (b *rounds) arrive(once lua.Once, lease int64, member string) lua.Arrival {
	b.t.Helper()
	a, err := b.conn.Arrive(b.t.Context(), b.keys, once, 1, lease, false, member)
	require.NoError(b.t, err)
	return a
}

// begin begins a barrier with these members, and says how many ms each has.
func (b *rounds) begin(lease map[string]int64) {
	b.t.Helper()
	b.do("FLUSHALL")
	for id, ms := range lease {
		_, _, err := b.conn.JoinBarrier(b.t.Context(), b.keys, lua.Once{ID: id}, ms)
		require.NoError(b.t, err)
	}
}

// The short way of an arrival renews its membership, leaves the record, tells the others, and does not take
// what it is not for.
func TestShortArrival(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRounds(t, s, lua.Barrier)
		name, arrivals, done, members := b.all[0], b.all[1], b.all[2], b.all[3]
		news := listen(t, s, b.keys.News())
		for ends, lease := range map[int64]map[string]int64{ // the first end is the other's, its own, or nobody's
			30_000: {"A:1": 60_000, "B:1": 30_000}, 60_000: {"A:1": 60_000, "B:1": 90_000}, -1: nil,
		} {
			b.begin(lease)
			member := ""
			if lease != nil {
				member = "A:1"
				b.do("ZADD", members, "XX", fmt.Sprint(time.Now().UnixMilli()+9000), member)
			} else {
				b.arrive(lua.Once{ID: "A:9"}, 60_000, "")
				<-news
			}
			b.do("PEXPIRE", name, "50000")
			generation := b.number("HGET", name, "generation")
			for copied := range 2 {
				a := b.arrive(lua.Once{ID: "A:2", Answered: "9 "}, 60_000, member)
				require.Equal(t, generation, a.Generation)
				require.Zero(t, a.Index)
				require.False(t, a.Leads)
				require.InDelta(t, ends, a.Round.Ends, 5000)
				a.Round.Ends = 0
				require.Equal(t, lua.Round{Phase: lua.Waiting, Generation: generation + 1, First: a.Round.First}, a.Round)
				require.LessOrEqual(t, a.Round.First, generation)
				if copied == 0 {
					require.Zero(t, b.number("EXISTS", done+":A:9"), "what was answered is forgotten")
					told, ok := lua.ParseNews(<-news)
					require.True(t, ok)
					require.InDelta(t, ends, told.Ends, 5000)
					told.Ends = 0
					require.Equal(t, a.Round, told)
				}
			}
			require.Empty(t, news)
			require.Equal(t, fmt.Sprint(generation, ":0"), b.text("GET", done+":A:2"))
			require.InDelta(t, 600_000, b.number("PTTL", done+":A:2"), 5000)
			require.InDelta(t, 172_800_000, b.number("PTTL", name), 5000)
			if member != "" {
				require.InDelta(t, time.Now().UnixMilli()+60_000, b.number("ZSCORE", members, member), 5000)
				require.InDelta(t, 172_800_000, b.number("PTTL", members), 5000)
			}
		}

		b.begin(map[string]int64{"A:1": 60_000})
		b.arrive(lua.Once{ID: "A:2"}, 90_000, "A:1")
		require.EqualValues(t, 90_000, b.number("HGET", name, "lease"), "it is longer than all before")
		b.arrive(lua.Once{ID: "C:2"}, 1000, "C:1")
		require.Positive(t, b.number("ZSCORE", members, "C:1"), "a new member")
		b.do("HSET", name, "c:X", "5")
		b.arrive(lua.Once{ID: "A:3"}, 1000, "A:1")
		require.EqualValues(t, 9, b.number("HLEN", name), "what was left over is gone")
		b.do("ZADD", arrivals, "1", "X")
		b.arrive(lua.Once{ID: "A:6"}, 1000, "A:1")
		require.Zero(t, b.number("EXISTS", arrivals), "what was left over is gone")
		b.do("ZADD", members, "XX", "1", "C:1")
		require.Zero(t, b.arrive(lua.Once{ID: "A:4"}, 1000, "A:1").Generation, "a member is dead")
		a, err := b.conn.Arrive(t.Context(), b.keys, lua.Once{ID: "A:5"}, 1, 1000, true, "A:1")
		require.NoError(t, err)
		require.Zero(t, a.Generation, "it is broken")

		for _, absurd := range [][]string{
			{"HSET", name, "bad", "12l 13"}, {"HSET", name, "generation", "179541074229305x"}, {"HSET", name, "barrier", "2"},
			{"HSET", name, "lease", "9999999999x"}, {"HSET", name, "waiting", "x"}, {"HSET", name, "parties", "x"},
		} {
			b.begin(map[string]int64{"A:1": 60_000})
			b.do(absurd...)
			before := b.dump()
			_, err := b.conn.Arrive(t.Context(), b.keys, lua.Once{ID: "A:2"}, 1, 60_000, false, "A:1")
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", absurd, err)
			require.Equal(t, before, b.dump(), "%v", absurd)
		}
	})
}

// When memory is short, a count frees waiters, and an arrival is refused and has done nothing.
func TestShortWaysWithoutMemory(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	latch, barrier := newRounds(t, s, lua.Latch), newRounds(t, s, lua.Barrier)
	for _, answered := range []string{"", "1 "} {
		latch.shut("A:1", 5, 0)
		latch.do("CONFIG", "SET", "maxmemory", "1")
		require.True(t, latch.count(lua.Once{ID: "A:2", Answered: answered}, 1, "").Done)
		latch.do("CONFIG", "SET", "maxmemory", "0")
	}
	barrier.begin(map[string]int64{"A:1": 60_000})
	barrier.do("CONFIG", "SET", "maxmemory", "1")
	before := barrier.dump()
	_, err := barrier.conn.Arrive(t.Context(), barrier.keys, lua.Once{ID: "A:2", Answered: "1 "}, 1, 60_000, false, "A:1")
	require.ErrorContains(t, err, "OOM")
	require.Equal(t, before, barrier.dump())
}
