package lua_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// lifo is the acquire of a lock that goes to whoever came last. It is all the Lua that such a primitive
// needs.
var lifo = lua.MustCompose(`
-- KEYS, ARGV and replies: as in lock/acquire.lua
-- include lock/take.lua

local function enqueue(entry) return redis.call('LPUSH', QUEUE, entry) end

-- include lock/contend.lua
`)

// A primitive outside of this package brings an acquire of its own: one that queues at the other end. All
// other scripts are those of a lock.
func TestComposedScript(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		box := b.open("B")
		acquire := func(owner string, mode lua.Mode) lua.Acquired {
			a, err := b.conn.AcquireBy(t.Context(), lifo, b.lock, lua.Claim{Owner: owner, Lease: 10_000, Longest: 2}, 0, mode)
			require.NoError(t, err)
			return a
		}
		first := acquire("A:1", lua.First)
		require.Positive(t, first.Token, "it is free")
		require.Equal(t, first.Token, acquire("A:1", lua.Again).Token, "a repeated acquire returns the same token")
		require.True(t, acquire("B:1", lua.First).Queued)
		require.True(t, acquire("B:2", lua.First).Queued)
		require.Zero(t, acquire("B:2", lua.Again).Sequence, "it is queued already")
		require.ErrorIs(t, acquire("B:3", lua.First).Refused, lua.ErrFull)
		require.False(t, acquire("B:3", lua.Try).Queued)

		for i, owner := range []string{"B:2", "B:1"} {
			require.True(t, b.release([]string{"A:1", "B:2"}[i], ""))
			m := box.next(t)
			require.Equal(t, lua.Grant, m.Kind)
			require.Equal(t, owner, lua.Owner("B", m.Number), "the last is the first")
			require.Equal(t, owner, b.inspect().Owner)
		}
		require.True(t, b.release("B:1", ""))
		require.Empty(t, b.inspect().Owner)
	})
}

// A composed script passes through a slot that moves as all others do: with its queue on the other side it
// waits, and says so.
func TestComposedScriptInAMovingSlot(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	conn, k := sharded(t, c, lua.Locks, "one")
	acquire := func(owner string) (lua.Acquired, error) {
		return conn.AcquireBy(t.Context(), lifo, k, lua.Claim{Owner: owner, Lease: 10_000, Longest: 9}, 0, lua.First)
	}
	for _, owner := range []string{"a:1", "b:1"} {
		_, err := acquire(owner)
		require.NoError(t, err)
	}
	m := c.Move(t, "one")
	m.Key(t, k.All()[1])
	_, err := acquire("b:2")
	require.Equal(t, lua.Refused, lua.Classify(err), err)
	s, err := conn.Inspect(t.Context(), k, 10)
	require.NoError(t, err)
	require.Equal(t, "a:1", s.Owner)
}

// Run is for a script with replies of its own.
func TestRun(t *testing.T) {
	redistest.Together(t)
	b := newBench(t, redistest.New(t))
	length := lua.MustCompose("-- include shared/queue.lua\nreturn {NAME, ARGV[1], redis.call('LLEN', QUEUE)}")
	b.acquire("A:1", 10_000, lua.First)
	b.acquire("A:2", 10_000, lua.First)
	reply, err := b.conn.Run(t.Context(), length, b.lock, []string{"x"}).ToArray()
	require.NoError(t, err)
	require.Len(t, reply, 3)
	n, err := reply[2].AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.Panics(t, func() { lua.MustCompose("-- include lock/none.lua") })
}

// Every file says in its first line what it is for, is used by some script, and includes files that exist.
func TestFiles(t *testing.T) {
	paths, err := filepath.Glob("*/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	used := map[string]bool{}
	name := regexp.MustCompile(`[a-z]+/[a-z]+\.lua`)
	for _, source := range slices.Concat(paths, sources) {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			include, is := strings.CutPrefix(
				strings.Replace(strings.TrimPrefix(strings.TrimSpace(line), "-- redisson "), "-- inline ", "-- include ", 1),
				"-- include ",
			)
			switch inLua := strings.HasSuffix(source, ".lua"); {
			case inLua && is && strings.HasPrefix(include, "keys "): // of the script's name
			case inLua && is:
				require.Contains(t, paths, strings.TrimSpace(include), source)
				used[include] = true
			case !inLua && !strings.HasSuffix(source, "_test.go") && !strings.HasPrefix(strings.TrimSpace(line), "//"):
				for _, path := range name.FindAllString(line, -1) {
					used[path] = true
				}
			}
		}
		if base, ok := strings.CutSuffix(filepath.Base(source), ".lua"); ok {
			require.True(t, strings.HasPrefix(string(text), "-- "+base+": "), "%s does not say what it is for", source)
		}
	}
	for _, path := range paths {
		require.True(t, used[path], "no script uses %s", path)
	}
}
