package lua_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// latch is the model: what the scripts must make of a history of commands.
type latch struct {
	phase        lua.Phase
	count        int64
	generation   int // counts from 1
	past         past
	participants map[string]bool
	news         int // messages published

	sets    map[string]bool // by id: outcomes of commands that may arrive again
	counts  map[string]lua.Counted
	deletes map[string]bool
}

// past is what the scripts can tell of the generations of a latch or barrier.
type past struct {
	fates map[int]lua.Fate
	bad   []int // those that the state lists
}

// list lists a generation as bad. When the list is full, nothing is known any more of the oldest there, nor
// of those before it.
func (p *past) list(generation int) {
	const most = 32 // MOST_BAD of shared/generation.lua
	if p.bad = append(p.bad, generation); len(p.bad) > most {
		for g := range p.fates {
			if g <= p.bad[0] {
				p.fates[g] = lua.Lost
			}
		}
		p.bad = p.bad[1:]
	}
}

func (l *latch) shut(n int64) {
	if l.phase == lua.Expired { // it is listed no sooner
		l.past.list(l.generation)
	}
	l.generation++
	l.phase, l.count, l.participants = lua.Shut, n, map[string]bool{}
	l.past.fates[l.generation] = lua.Pending
}

func (l *latch) open() {
	l.phase, l.count = lua.Open, 0
	l.past.fates[l.generation] = lua.Done
}

func (l *latch) set(id string, n int64, again bool) bool {
	if done, ok := l.sets[id]; ok {
		return done
	}
	done := l.phase != lua.Shut && (again || l.phase != lua.Open)
	if done {
		l.shut(n)
		l.news++
	}
	l.sets[id] = done
	return done
}

func (l *latch) countDown(id string, n int64, participant string) lua.Counted {
	if counted, ok := l.counts[id]; ok {
		return counted
	}
	counted := l.counted(n, participant)
	l.counts[id] = counted
	return counted
}

func (l *latch) counted(n int64, participant string) lua.Counted {
	switch {
	case participant != "" && l.participants[participant] && (l.phase == lua.Shut || l.phase == lua.Open):
		return lua.Counted{Before: true, Remain: l.count}
	case l.phase != lua.Shut:
		return lua.Counted{Phase: l.phase}
	case n > l.count:
		return lua.Counted{Remain: l.count}
	}
	l.count -= n
	if participant != "" {
		l.participants[participant] = true
	}
	if l.count == 0 {
		l.open()
		l.news++
	}
	return lua.Counted{Done: true, Remain: l.count}
}

func (l *latch) remove(id string) bool {
	if existed, ok := l.deletes[id]; ok {
		return existed
	}
	existed := l.phase != lua.Unset && l.phase != lua.Deleted
	switch l.phase {
	case lua.Shut:
		l.past.fates[l.generation] = lua.Removed
		l.past.list(l.generation)
	case lua.Expired:
		l.past.list(l.generation)
	}
	if existed {
		l.phase, l.count = lua.Deleted, 0
		l.news++
	}
	l.deletes[id] = existed
	return existed
}

// listen counts what is published on a channel.
func listen(t testing.TB, s *redistest.Server, channel string) chan string {
	t.Helper()
	sub := s.Client(t)
	heard, confirmed := make(chan string, 100_000), make(chan struct{})
	ctx := rueidis.WithOnSubscriptionHook(t.Context(), func(rueidis.PubSubSubscription) { close(confirmed) })
	go func() {
		_ = sub.Receive(ctx, sub.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { heard <- m.Message })
	}()
	<-confirmed
	return heard
}

// Set, count down, delete, by us and by Java processes, and copies of any of them later: the state, each
// reply, and what each generation that ever was is said to have become, are those of the model.
// Rule 17.
func TestLatchAgainstModel(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		conn := lua.Conn{Client: s.Client(t)}
		keys, err := lua.NewKeys(lua.Latch, "latch", false)
		require.NoError(t, err)
		heard := listen(t, s, keys.News())
		do := func(r require.TestingT, args ...string) int64 {
			m, err := conn.Client.Do(context.Background(), conn.Client.B().Arbitrary(args...).Build()).ToMessage()
			require.NoError(r, err)
			n, _ := m.AsInt64() // of those whose reply is a number
			return n
		}
		rapid.Check(t, func(r *rapid.T) {
			do(r, "FLUSHALL")
			for len(heard) > 0 {
				<-heard
			}
			m := &latch{
				phase: lua.Unset, past: past{fates: map[int]lua.Fate{}}, participants: map[string]bool{},
				sets: map[string]bool{}, counts: map[string]lua.Counted{}, deletes: map[string]bool{},
			}
			var numbers []int64 // of generations
			next, commands := 0, []func(){}
			id := func() lua.Once { next++; return lua.Once{ID: fmt.Sprintf("%c:%d", 'A'+next%3, next)} }
			run := func(command func()) { command(); commands = append(commands, command) }
			r.Repeat(map[string]func(*rapid.T){
				"set": func(r *rapid.T) {
					o, n, again := id(), rapid.Int64Range(1, 4).Draw(r, "n"), rapid.Bool().Draw(r, "again")
					ttl := rapid.SampledFrom([]int64{0, 60_000}).Draw(r, "ttl")
					run(func() {
						done, err := conn.Arm(context.Background(), keys, o, n, ttl, again)
						require.NoError(r, err)
						require.Equal(r, m.set(o.ID, n, again), done)
					})
				},
				"count": func(r *rapid.T) {
					o, n := id(), rapid.Int64Range(1, 3).Draw(r, "n")
					participant := rapid.SampledFrom([]string{"", "", "p", "q"}).Draw(r, "participant")
					if participant != "" {
						n = 1
					}
					run(func() {
						counted, err := conn.Count(context.Background(), keys, o, n, participant)
						require.NoError(r, err)
						require.Equal(r, m.countDown(o.ID, n, participant), counted)
					})
				},
				"delete": func(r *rapid.T) {
					o := id()
					run(func() {
						existed, err := conn.DeleteLatch(context.Background(), keys, o)
						require.NoError(r, err)
						require.Equal(r, m.remove(o.ID), existed)
					})
				},
				"copy": func(r *rapid.T) {
					if len(commands) > 0 {
						rapid.SampledFrom(commands).Draw(r, "command")()
					}
				},
				"expire": func(r *rapid.T) {
					if m.phase == lua.Shut {
						do(r, "HSET", keys.All()[1], "until", fmt.Sprint(time.Now().UnixMilli()-1000), "ttl", "60000")
						do(r, "PEXPIRE", keys.All()[0], "900") // what is left of it
						do(r, "PEXPIRE", keys.All()[1], "60000")
						m.phase, m.count = lua.Expired, 0
						m.past.fates[m.generation] = lua.Late
					}
				},
				"forget": func(r *rapid.T) {
					if m.phase == lua.Open || m.phase == lua.Expired {
						do(r, "HSET", keys.All()[1], "until", "1", "ttl", "1")
						if m.phase == lua.Expired {
							m.past.list(m.generation)
						}
						m.phase = lua.Deleted
					}
				},
				"java sets": func(r *rapid.T) {
					if m.phase != lua.Expired && do(r, "SETNX", keys.All()[0], "2") == 1 {
						m.shut(2)
					}
				},
				"java counts": func(r *rapid.T) {
					if m.phase != lua.Shut {
						return
					}
					if do(r, "DECR", keys.All()[0]) > 0 {
						m.count--
						return
					}
					do(r, "DEL", keys.All()[0])
					m.open()
				},
				"": func(r *rapid.T) {
					state, participants, err := conn.Latch(context.Background(), keys, 100)
					require.NoError(r, err)
					require.Equal(r, m.phase, state.Phase)
					require.Equal(r, m.count, state.Number)
					if m.generation > len(numbers) {
						numbers = append(numbers, state.Generation)
					}
					require.Len(r, numbers, m.generation)
					require.True(r, slices.IsSorted(numbers))
					for i, g := range numbers {
						require.Equal(r, m.past.fates[i+1], state.Fate(g), "generation %d of %d: %+v", i+1, len(numbers), state)
					}
					if m.phase == lua.Shut || m.phase == lua.Open {
						require.Len(r, participants, len(m.participants))
					}
					for _, key := range keys.All()[:2] {
						require.True(r, do(r, "PTTL", key) != -1 || m.phase == lua.Shut, "only a shut latch has no time to live")
					}
				},
			})
			require.Eventually(r, func() bool { return len(heard) == m.news }, 5*time.Second, time.Millisecond, "%d messages", m.news)
		})
	})
}

// Counts have 64 bits, and are exact.
func TestLatchCountsExactly(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		conn := lua.Conn{Client: s.Client(t)}
		keys, err := lua.NewKeys(lua.Latch, "latch", false)
		require.NoError(t, err)
		ctx := t.Context()
		done, err := conn.Arm(ctx, keys, lua.Once{ID: "A:1"}, math.MaxInt64, 0, false)
		require.NoError(t, err)
		require.True(t, done)
		for n, step := range []int64{1, 1 << 53, 2} {
			counted, err := conn.Count(ctx, keys, lua.Once{ID: fmt.Sprint("A:", n+2)}, step, "")
			require.NoError(t, err)
			require.True(t, counted.Done)
		}
		rest := int64(math.MaxInt64 - 1<<53 - 3)
		counted, err := conn.Count(ctx, keys, lua.Once{ID: "A:9"}, rest+1, "")
		require.NoError(t, err)
		require.Equal(t, lua.Counted{Remain: rest}, counted)
		counted, err = conn.Count(ctx, keys, lua.Once{ID: "A:10", Answered: "1 2 3 4 9"}, rest, "")
		require.NoError(t, err)
		require.Equal(t, lua.Counted{Done: true}, counted)
		kept, err := conn.Client.Do(ctx, conn.Client.B().Keys().Pattern("latchkey_done:*").Build()).AsStrSlice()
		require.NoError(t, err)
		require.Equal(t, []string{"latchkey_done:{latch}:A:10"}, kept, "what was answered is forgotten")
	})
}

// Foreign data under any of the names is left as it is, and so is everything else.
func TestLatchBesideForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		conn := lua.Conn{Client: s.Client(t)}
		keys, err := lua.NewKeys(lua.Latch, "latch", false)
		require.NoError(t, err)
		ctx := t.Context()
		do := func(args ...string) {
			require.NoError(t, conn.Client.Do(ctx, conn.Client.B().Arbitrary(args...).Build()).Error())
		}
		for _, foreign := range [][]string{
			{"SET", "latch", "text"}, {"SET", "latch", "0"}, {"SET", "latch", "-1"}, {"SET", "latch", "9223372036854775808"},
			{"SET", "latch", "1.5"}, {"SET", "latch", ""}, {"RPUSH", "latch", "1"},
			{"HSET", "latchkey_latch:{latch}", "a", "b"}, {"SET", "latchkey_latch:{latch}", "1"},
			{"HSET", "latchkey_latch:{latch}", "generation", "x"},
		} {
			do("FLUSHALL")
			do(foreign...)
			before := dump(t, conn.Client)
			_, err := conn.Arm(ctx, keys, lua.Once{ID: "A:1"}, 1, 0, true)
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			_, err = conn.Count(ctx, keys, lua.Once{ID: "A:2"}, 1, "p")
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			_, err = conn.DeleteLatch(ctx, keys, lua.Once{ID: "A:3"})
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			_, _, err = conn.Latch(ctx, keys, 1)
			require.Equal(t, lua.WrongType, lua.Classify(err), "%v: %v", foreign, err)
			require.Equal(t, before, dump(t, conn.Client))
		}
	})
}

// dump returns all keys with what is in them. A key whose time is over while it looks is none.
func dump(t testing.TB, c rueidis.Client) map[string]string {
	t.Helper()
	names, err := c.Do(t.Context(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
	require.NoError(t, err)
	all := map[string]string{}
	for _, name := range names {
		kind, err := c.Do(t.Context(), c.B().Type().Key(name).Build()).ToString()
		require.NoError(t, err)
		if kind == "none" {
			continue
		}
		read := map[string][]string{
			"string": {"GET", name}, "hash": {"HGETALL", name}, "list": {"LRANGE", name, "0", "-1"}, "zset": {"ZRANGE", name, "0", "-1"},
		}[kind]
		require.NotNil(t, read, kind)
		m, err := c.Do(t.Context(), c.B().Arbitrary(read...).Build()).ToAny()
		if rueidis.IsRedisNil(err) {
			continue
		}
		require.NoError(t, err)
		all[name] = fmt.Sprint(m)
	}
	return all
}
