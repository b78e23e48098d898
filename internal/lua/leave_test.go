package lua_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// leave ends the waits of these ids, those marked with ! wherever they are queued, and returns which ended.
func (b *bench) leave(t require.TestingT, ids ...string) []bool {
	batch := make([]lua.Departure, len(ids))
	for i, id := range ids {
		id, everywhere := strings.CutSuffix(id, "!")
		batch[i] = lua.Departure{Owner: id, Entry: shared(id).Entry(), Everywhere: everywhere}
	}
	ended, err := b.conn.Leave(b.t.Context(), b.lock, batch, 0)
	require.NoError(t, err)
	require.Len(t, ended, len(ids))
	return ended
}

// fill replaces the queue.
func (b *bench) fill(t require.TestingT, entries []string) {
	require.NoError(t, b.do("DEL", b.lock.All()[1]).Error())
	for part := range slices.Chunk(entries, 1000) {
		require.NoError(t, b.do(append([]string{"RPUSH", b.lock.All()[1]}, part...)...).Error())
	}
}

func (b *bench) entries(t require.TestingT) []string {
	all, err := b.do("LRANGE", b.lock.All()[1], "0", "-1").AsStrSlice()
	require.NoError(t, err)
	return all
}

// Many waits end in one script, and what these owned goes to the next.
func TestLeave(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		box := b.open("B")
		queue := b.lock.All()[1]
		b.share("A:1", lua.First)
		for _, id := range []string{"A:2", "A:3", "B:1", "A:4"} {
			b.share(id, lua.First)
		}
		require.NoError(t, b.do("RPUSH", queue, shared("A:3").Entry()).Error())
		require.Equal(t, []bool{true, true, true}, b.leave(t, "A:2", "A:3!", "A:9"))
		require.Equal(t, []string{shared("B:1").Entry(), shared("A:4").Entry()}, b.inspect().Queue)
		require.Equal(t, []bool{true, true}, b.leave(t, "A:1", "A:4"), "an owner, too")
		require.Equal(t, uint64(1), box.next(t).Number)
		require.Equal(t, "B:1", b.inspect().Owner)
		require.Zero(t, b.inspect().Length)
		require.Equal(t, []bool{true}, b.leave(t, "A:1"), "the second time finds nothing")
		require.Equal(t, "B:1", b.inspect().Owner)
		require.NoError(t, b.do("SET", queue, "foreign").Error())
		require.Equal(t, []bool{true}, b.leave(t, "B:1"))
		n, err := b.do("EXISTS", b.lock.Name()).AsInt64()
		require.NoError(t, err)
		require.Zero(t, n, "the lock is given back although its queue cannot be read")
	})
}

// What one script looks at is bounded, also where none of the ids is queued, and two are ended all the same.
func TestLeaveIsBounded(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.share("H:1", lua.First)
		b.fill(t, slices.Repeat([]string{"x"}, 100_000))
		many := make([]string, lua.LeaveBatch)
		for i := range many {
			many[i] = fmt.Sprint("A:", i)
		}
		ended := b.leave(t, many...)
		require.Equal(t, []bool{true, true}, ended[:2])
		require.Less(t, len(slices.DeleteFunc(ended, func(is bool) bool { return !is })), 10)
		require.Len(t, b.entries(t), 100_000)
	})
}

// A crowd leaves in as few scripts as it has batches, wherever it stands in the queue.
func TestCrowdLeavesInBatches(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.share("H:1", lua.First)
		const crowd, stay = 4 * lua.LeaveBatch, 30_000
		for _, ahead := range []int{0, 1, stay} {
			entries := slices.Repeat([]string{"x"}, stay)
			for i := range crowd {
				entries = slices.Insert(entries, ahead+i, shared(fmt.Sprint("A:", i)).Entry())
			}
			b.fill(t, entries)
			for begin := 0; begin < crowd; begin += lua.LeaveBatch {
				ids := make([]string, lua.LeaveBatch)
				for i := range ids {
					ids[i] = fmt.Sprint("A:", begin+i)
				}
				require.NotContains(t, b.leave(t, ids...), false, ahead)
			}
			require.Equal(t, entries[:ahead], b.entries(t)[:ahead])
			require.Len(t, b.entries(t), stay)
		}
	})
}

// Whatever leaves, in whatever order, out of whatever queue: what stays keeps its order, and all that was to
// be ended is, after as many repetitions as Redis asks for.
func TestLeaveAgainstModel(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.share("H:1", lua.First)
		rapid.Check(t, func(r *rapid.T) {
			var queue, ids []string
			gone := map[string]bool{} // of entries
			filler := slices.Repeat([]string{"foreign"}, rapid.SampledFrom([]int{0, 0, 3, 700, 15_000}).Draw(r, "filler"))
			queue = append(queue, filler...)
			put := func(entry string) { // near each other, or anywhere
				at := len(queue)
				if at > 0 && rapid.Bool().Draw(r, "anywhere") {
					at = rapid.IntRange(0, len(queue)).Draw(r, "at")
				}
				queue = slices.Insert(queue, at, entry)
			}
			for i := range rapid.IntRange(1, 60).Draw(r, "known") {
				id := fmt.Sprint("A:", i)
				copies := rapid.SampledFrom([]int{1, 1, 1, 0, 2, 3}).Draw(r, "copies")
				for range copies {
					put(shared(id).Entry())
				}
				if rapid.IntRange(0, 3).Draw(r, "stays") == 0 {
					continue
				}
				gone[shared(id).Entry()] = true
				if copies > 1 || rapid.IntRange(0, 9).Draw(r, "everywhere") == 0 {
					id += "!"
				}
				ids = append(ids, id)
			}
			ids = rapid.Permutation(ids).Draw(r, "order")
			b.fill(r, queue)
			for len(ids) > 0 {
				ended := b.leave(r, ids...)
				require.NotContains(r, ended[:min(2, len(ids))], false)
				var left []string
				for i, id := range ids {
					if !ended[i] {
						left = append(left, id)
					}
				}
				ids = left
			}
			want := slices.DeleteFunc(queue, func(entry string) bool { return gone[entry] })
			require.Equal(r, append([]string{}, want...), append([]string{}, b.entries(r)...))
			require.Equal(r, "H:1", b.inspect().Owner)
		})
	})
}

// A wait can be ended when Redis has no memory left, and so can many.
func TestLeaveWhenMemoryIsFull(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	b := newBench(t, s)
	b.share("H:1", lua.First)
	for _, many := range []int{1, 5, 50} {
		ids, entries := make([]string, many), []string{"x"}
		for i := range ids {
			ids[i] = fmt.Sprint("A:", i)
			entries = append(entries, shared(ids[i]).Entry(), "x")
		}
		b.fill(t, entries)
		require.NoError(t, b.do("CONFIG", "SET", "maxmemory", "1").Error())
		require.NotContains(t, b.leave(t, ids...), false)
		require.NoError(t, b.do("CONFIG", "SET", "maxmemory", "0").Error())
		require.Equal(t, slices.Repeat([]string{"x"}, many+1), b.entries(t))
	}
}

// A lock stays taken for its rest also when memory is short: giving back is not refused.
func TestRestWhenMemoryIsShort(t *testing.T) {
	redistest.Together(t)
	b := newBench(t, redistest.NewProcess(t))
	b.acquire("a:1", 60_000, lua.Try)
	require.NoError(t, b.do("CONFIG", "SET", "maxmemory", "1").Error())
	owned, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "a:1", Rest: 5000}, 0)
	require.NoError(t, b.do("CONFIG", "SET", "maxmemory", "0").Error())
	require.NoError(t, err)
	require.True(t, owned)
	require.Equal(t, "a:1:rest", b.inspect().Owner)
}
