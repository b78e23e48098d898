package lua_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// token is one that a clock could have given.
const token = int64(1_700_000_000_000_000)

// fences are those of the tests of fenced writes.
type fences struct {
	conn lua.Conn
	keys []*lua.Keys
}

func newFences(t testing.TB, s *redistest.Server, names ...string) fences {
	t.Helper()
	f := fences{conn: lua.Conn{Client: s.Client(t)}}
	for _, name := range names {
		k, err := lua.NewKeys(lua.Fence, name, false)
		require.NoError(t, err)
		f.keys = append(f.keys, k)
	}
	return f
}

func (f fences) do(t require.TestingT, args ...string) rueidis.RedisMessage {
	m, err := f.conn.Client.Do(context.Background(), f.conn.Client.B().Arbitrary(args...).Build()).ToMessage()
	if !rueidis.IsRedisNil(err) {
		require.NoError(t, err, "%v", args)
	}
	return m
}

func (f fences) get(t require.TestingT, key string) string {
	m := f.do(t, "GET", key)
	text, _ := m.ToString() // nil: there is none
	return text
}

func (f fences) set(token int64, number uint64, value string) error {
	return f.conn.FenceSet(context.Background(), f.keys[0], token, number, value)
}

func (f fences) eval(token int64, script string, args ...string) (rueidis.RedisMessage, error) {
	return f.conn.FenceEval(context.Background(), f.keys, token, script, args)
}

// Sets with several tokens, Evals, and copies of any Set later: what is in Redis, and each reply, are those
// of the model.
// Rule 43.
func TestFenceAgainstModel(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		f := newFences(t, s, "a")
		rapid.Check(t, func(r *rapid.T) {
			f.do(r, "FLUSHALL")
			type set struct {
				token  int64
				number uint64
				value  string
			}
			var (
				sent     []set
				greatest int64
				last     uint64 // the number of the last Set with that token
				value    string
				number   uint64
			)
			run := func(one set) {
				err := f.set(one.token, one.number, one.value)
				if one.token < greatest {
					require.ErrorIs(r, err, lua.ErrStale)
					require.ErrorContains(r, err, fmt.Sprint(greatest))
					return
				}
				require.NoError(r, err)
				if one.token > greatest {
					greatest, last = one.token, 0
				}
				if one.number > last {
					last, value = one.number, one.value
				}
			}
			r.Repeat(map[string]func(*rapid.T){
				"": func(r *rapid.T) { require.Equal(r, value, f.get(r, "a")) },
				"set": func(r *rapid.T) {
					number++
					one := set{token + rapid.Int64Range(0, 3).Draw(r, "token"), number, fmt.Sprint("v", number)}
					sent = append(sent, one)
					if rapid.Bool().Draw(r, "arrives") { // else its first copy comes later
						run(one)
					}
				},
				"copy": func(r *rapid.T) {
					if len(sent) > 0 {
						run(rapid.SampledFrom(sent).Draw(r, "which"))
					}
				},
				"eval": func(r *rapid.T) {
					with := token + rapid.Int64Range(0, 3).Draw(r, "token")
					m, err := f.eval(with, `return redis.call("APPEND", KEYS[1], ARGV[1])`, "+")
					if with < greatest {
						require.ErrorIs(r, err, lua.ErrStale)
						return
					}
					require.NoError(r, err)
					if with > greatest {
						greatest, last = with, 0
					}
					value += "+"
					n, err := m.AsInt64()
					require.NoError(r, err)
					require.EqualValues(r, len(value), n)
				},
			})
		})
		f.do(t, "DEL", "a")
		redistest.OnlyExpiring(t, f.conn.Client)
	})
}

// A script of the user's runs as it would by itself: with its keys and arguments, whatever it declares and
// however it returns; its errors name its lines.
// Rule 43.
func TestFenceEval(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		f := newFences(t, s, "{x}a", "{x}b")
		text := func(script string, args ...string) string {
			t.Helper()
			m, err := f.eval(token, script, args...)
			require.NoError(t, err, script)
			if m.IsArray() {
				all, err := m.AsStrSlice()
				require.NoError(t, err)
				return strings.Join(all, ",")
			}
			if m.IsNil() {
				return "nil"
			}
			if n, err := m.AsInt64(); err == nil {
				return fmt.Sprint(n)
			}
			word, err := m.ToString()
			require.NoError(t, err)
			return word
		}
		require.Equal(t, "{x}a,{x}b,1,2,2,2", text(`return {KEYS[1], KEYS[2], ARGV[1], ARGV[2], tostring(#KEYS), tostring(#ARGV)}`, "1", "2"))
		require.Equal(t, "0", text(`return #ARGV`))
		require.Equal(t, "9", text("local function double(n) return 2 * n end\nlocal n, keys = double(4), 1\nif n == 8 then return n + keys end\nreturn 0"))
		require.Equal(t, "nil", text(`return nil`))
		require.Equal(t, "nil", text(`return redis.call("GET", "{x}nothing")`))
		require.Equal(t, "nil", text(`local x = 1 -- and nothing is returned`))
		require.Equal(t, "OK", text(`return redis.call("SET", KEYS[2], "v")`))
		require.Equal(t, "nil", text(``))
		many := make([]string, 20_000) // more than Lua can unpack
		for i := range many {
			many[i] = fmt.Sprint(i)
		}
		require.Equal(t, "19999", text(`return ARGV[#ARGV]`, many...))

		for script, want := range map[string]string{
			`return redis.error_reply("MINE it went wrong")`:                         "MINE it went wrong",
			"local x = 1\nlocal y = x\nerror('on line three')":                       "user_script:3: on line three",
			"\nreturn redis.call('LPUSH', KEYS[2], 'x')":                             "WRONGTYPE",
			`return nothing.at.all`:                                                  "user_script:1:",
			`end return 1`:                                                           "near 'end'",
			`return redis.error_reply("NOSCRIPT No script, said a script") -- again`: "NOSCRIPT",
		} {
			_, err := f.eval(token, script)
			var reply *rueidis.RedisError
			require.ErrorAs(t, err, &reply, script)
			if strings.HasPrefix(want, "user_script") && !isRedis(t, f) {
				want = "1:" // the embedded one has other names
				if strings.Contains(script, "three") {
					want = "on line three"
				}
			}
			require.ErrorContains(t, err, want, script)
			require.True(t, lua.Ran(err), script)
		}
		// What Redis 6.2 says when it refuses the first write, which is ours.
		_, err := f.eval(token, `return redis.error_reply("ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -MISCONF no disk")`)
		require.ErrorContains(t, err, "MISCONF")
		require.False(t, lua.Ran(err))

		// Each of those has run once at most, also one whose error is nearly the server's, for a script that it does not know.
		for _, runs := range []string{"1", "2", "3"} { // the server knows it from the second time on
			_, err := f.eval(token, `redis.call("INCR", "{x}runs") return redis.error_reply("NOSCRIPT No matching script, please use EVAL")`)
			require.ErrorContains(t, err, "NOSCRIPT")
			require.Equal(t, runs, f.get(t, "{x}runs"))
		}
		// The server is told a text once.
		known := `return redis.call("INCR", "{x}runs")`
		for _, runs := range []string{"4", "5", "6"} {
			if runs == "6" {
				require.NoError(t, f.conn.Client.Do(t.Context(), f.conn.Client.B().ScriptFlush().Build()).Error())
			}
			require.Equal(t, runs, text(known))
		}

		_, err = f.eval(token-1, `return redis.call("SET", KEYS[1], "stale")`)
		require.ErrorIs(t, err, lua.ErrStale)
		require.Empty(t, f.get(t, "{x}a"))
		require.Equal(t, "1", text(`return 1`), "nothing was left half done")
		// One key with a greater token is enough, and then no other key is told of this one.
		one, err := lua.NewKeys(lua.Fence, "{x}b", false)
		require.NoError(t, err)
		require.NoError(t, f.conn.FenceSet(t.Context(), one, token+5, 1, "v"))
		_, err = f.eval(token+4, `return 1`)
		require.ErrorIs(t, err, lua.ErrStale)
		require.Equal(t, fmt.Sprint(token), f.get(t, "latchkey_fence:{x}a"))
		f.do(t, "DEL", "{x}b", "{x}runs")
		redistest.OnlyExpiring(t, f.conn.Client)
	})
}

func isRedis(t testing.TB, f fences) bool {
	t.Helper()
	info, err := f.conn.Client.Do(t.Context(), f.conn.Client.B().Info().Section("server").Build()).ToString()
	return err == nil && strings.Contains(info, "process_id")
}

// A companion that is not ours is left as it is, and so is the key. What may not be read is refused as Redis
// says it.
// Rule 43.
func TestFenceOfForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		f := newFences(t, s, "a")
		for _, foreign := range [][]string{
			{"RPUSH", "x"}, {"SET", "1"}, {"SET", "170000000000000x"}, {"SET", "9999999999999999"}, {"SET", "1700000000000000 1"},
			{"SET", ""}, {"SET", "1700000000000000 0000000000000001 "}, {"SADD", "x"},
			{"SET", "9007199254740990"}, {"SET", strconv.FormatInt(time.Now().Add(25*time.Hour).UnixMicro(), 10)},
		} {
			f.do(t, "FLUSHALL")
			f.do(t, foreign[0], "latchkey_fence:{a}", foreign[1])
			before := f.do(t, "TYPE", "latchkey_fence:{a}")
			require.ErrorIs(t, f.set(token, 1, "v"), lua.ErrForeignFence, "%v", foreign)
			_, err := f.eval(token, `return redis.call("SET", KEYS[1], "v")`)
			require.ErrorIs(t, err, lua.ErrForeignFence, "%v", foreign)
			require.Equal(t, lua.WrongType, lua.Classify(err))
			require.Empty(t, f.get(t, "a"))
			require.Equal(t, before, f.do(t, "TYPE", "latchkey_fence:{a}"))
		}
	})
	s := redistest.NewProcess(t)
	f := newFences(t, s, "a")
	f.do(t, "ACL", "SETUSER", "poor", "on", ">secret", "resetkeys", "~a", "+@all")
	option := s.Option()
	option.Username, option.Password = "poor", "secret"
	poor, err := rueidis.NewClient(option)
	require.NoError(t, err)
	defer poor.Close()
	f.conn.Client = poor
	require.True(t, lua.Forbidden(f.set(token, 1, "v")))
	_, err = f.eval(token, `return 1`)
	require.True(t, lua.Forbidden(err))
}

// When memory is short, a write is refused before anything is changed.
// Rule 43.
func TestFenceWhenMemoryIsFull(t *testing.T) {
	redistest.Together(t)
	f := newFences(t, redistest.NewProcess(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction"), "a")
	require.ErrorContains(t, f.set(token, 1, "v"), "OOM")
	_, err := f.eval(token, `return redis.call("SET", KEYS[1], "v")`)
	require.ErrorContains(t, err, "OOM")
	n, err := f.conn.Client.Do(t.Context(), f.conn.Client.B().Dbsize().Build()).AsInt64()
	require.NoError(t, err)
	require.Zero(t, n)
}

// While a slot moves, a write either finds key and companion on one side, or is refused for now: no token is
// forgotten on the way.
// Rule 43.
func TestFenceInAMovingSlot(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	conn, k := sharded(t, c, lua.Fence, "one")
	ctx := t.Context()
	set := func(token int64, number uint64) error { return conn.FenceSet(ctx, k, token, number, "v") }
	eval := func(token int64) error {
		_, err := conn.FenceEval(ctx, []*lua.Keys{k}, token, `return redis.call("SET", KEYS[1], "v")`, nil)
		return err
	}
	require.NoError(t, set(token, 1))
	m := c.Move(t, "one")
	require.NoError(t, set(token+1, 2), "both are where they were")
	m.Key(t, k.All()[1])
	for _, err := range []error{set(token+2, 3), eval(token + 2)} {
		require.Equal(t, lua.Refused, lua.Classify(err), err)
		require.False(t, lua.Ran(err), err)
	}
	m.Key(t, "one")
	require.NoError(t, set(token+2, 3), "both have moved")
	require.NoError(t, eval(token+2))
	require.ErrorIs(t, set(token, 4), lua.ErrStale)
	m.Assign(t)
	require.Eventually(t, func() bool { return eval(token+3) == nil }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, eval(token), lua.ErrStale)
}
