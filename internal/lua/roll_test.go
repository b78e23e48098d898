package lua_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// roll reads one part of the queue.
func (b *bench) roll(t require.TestingT, client, behind string, part int) lua.Roll {
	r, err := b.conn.Roll(b.t.Context(), b.lock, client, behind, part)
	require.NoError(t, err)
	return r
}

// rollCall reads the whole queue in parts, with something that happens after each.
func (b *bench) rollCall(t require.TestingT, client string, part int, between func()) (seen []string, ended bool) {
	for behind, parts := "", 0; parts < 1000; parts++ {
		r := b.roll(t, client, behind, part)
		if r.Gone {
			return seen, false
		}
		seen = append(seen, r.Entries...)
		if r.End == "" {
			return seen, true
		}
		behind = r.End
		between()
	}
	return seen, false
}

// A part has the entries of the client alone, and says where the next one begins, how long the queue is, and
// what came to be before it.
func TestRoll(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		r := b.roll(t, "A", "", 3)
		require.Empty(t, r.Entries, "nobody has ever waited")
		require.Empty(t, r.End)
		require.Zero(t, r.Length)
		require.InDelta(t, time.Now().UnixMicro(), r.Now, 10e6)
		owner := b.share("H:1", lua.First)
		var all []string
		var last int64
		for _, id := range []string{"A:1", "B:1", "A:2", "AA:3", "A:4", "B:2", "A:5"} {
			last = b.share(id, lua.First).Sequence
			all = append(all, shared(id).Entry())
		}
		before := dump(t, b.conn.Client)
		r = b.roll(t, "A", "", 3)
		require.Equal(t, []string{all[0], all[2]}, r.Entries)
		require.Equal(t, all[2], r.End)
		require.EqualValues(t, 7, r.Length)
		require.EqualValues(t, 3, r.Read)
		require.Equal(t, last, r.After, "all grants that follow have a greater token")
		require.Greater(t, r.After, owner.Token)
		r = b.roll(t, "A", r.End, 3)
		require.Equal(t, []string{all[4]}, r.Entries)
		require.Equal(t, all[5], r.End)
		r = b.roll(t, "A", r.End, 3)
		require.Equal(t, []string{all[6]}, r.Entries)
		require.Empty(t, r.End)
		r = b.roll(t, "A", all[6], 3)
		require.Empty(t, r.Entries, "nobody stands behind the last")
		require.Empty(t, r.End)
		require.True(t, b.roll(t, "A", shared("A:9").Entry(), 3).Gone)
		require.Equal(t, before, dump(t, b.conn.Client), "nothing was written")
	})
}

// Holders of other primitives share tokens, or have none: there the clock tells what came first.
func TestRollOfOtherFamilies(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		rw := newRW(t, s)
		rw.claim(shared("H:1"), lua.First)
		rw.read("A:1", lua.First)
		queued := map[*bench]lua.Claim{rw: reads("A:1")}
		for family, demand := range map[lua.Family]string{lua.Leased: "1", lua.Plain: "2"} {
			p := newSem(t, s, family)
			p.lock, _ = lua.NewKeys(family, family.String(), false)
			p.set(2)
			p.take("H:1", "2", lua.First)
			p.take("A:1", demand, lua.First)
			queued[p.bench] = request("A:1", demand)
		}
		for b, claim := range queued {
			r := b.roll(t, "A", "", 3)
			require.Equal(t, []string{claim.Entry()}, r.Entries, b.lock.Name())
			require.Zero(t, r.After)
			require.InDelta(t, time.Now().UnixMicro(), r.Now, 10e6)
		}
	})
}

// Of what is in the queue from the beginning to the end of a roll call, all is seen, and nothing that never
// was there: whatever is granted, cancelled, and queued behind in between.
// Rule 4.
func TestRollAgainstModel(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		rapid.Check(t, func(r *rapid.T) {
			n := 0
			fresh := func() string {
				n++
				return shared(fmt.Sprint(rapid.SampledFrom([]string{"A", "B"}).Draw(r, "client"), ":", n)).Entry()
			}
			var queue []string
			for range rapid.IntRange(0, 60).Draw(r, "length") {
				queue = append(queue, fresh())
			}
			if rapid.IntRange(0, 3).Draw(r, "foreign") == 0 { // and many times the same
				at := rapid.IntRange(0, len(queue)).Draw(r, "at")
				queue = slices.Insert(queue, at, slices.Repeat([]string{"x"}, rapid.IntRange(1, 3).Draw(r, "copies"))...)
			}
			ever, always := slices.Clone(queue), slices.Clone(queue)
			b.fill(r, queue)
			between := func() {
				for range rapid.IntRange(0, 2).Draw(r, "changes") {
					switch {
					case len(queue) == 0 || rapid.Bool().Draw(r, "queues"):
						entry := fresh()
						queue, ever = append(queue, entry), append(ever, entry)
						require.NoError(r, b.do("RPUSH", b.lock.All()[1], entry).Error())
					default:
						at := rapid.SampledFrom([]int{0, rapid.IntRange(0, len(queue)-1).Draw(r, "at")}).Draw(r, "leaves")
						entry := queue[at]
						at = slices.Index(queue, entry)
						queue = slices.Delete(queue, at, at+1)
						always = slices.DeleteFunc(always, func(e string) bool { return e == entry })
						require.NoError(r, b.do("LREM", b.lock.All()[1], "1", entry).Error())
					}
				}
			}
			seen, ended := b.rollCall(r, "A", rapid.IntRange(4, 20).Draw(r, "part"), between)
			for _, entry := range seen {
				require.True(r, strings.HasPrefix(entry, "1:A:"))
				require.Contains(r, ever, entry)
			}
			for _, entry := range always {
				if ended && strings.HasPrefix(entry, "1:A:") {
					require.Contains(r, seen, entry)
				}
			}
		})
	})
}

// What is not our queue is left alone. Redis has no memory left: nothing is made.
func TestRollOfForeignData(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	b := newBench(t, s)
	b.fill(t, []string{"", "1:", "1:A", "1:A:", "1:A:text", "A:1", "\x00\xff", "1:A:1:60000:32", "2:A:1:60000:32"})
	require.NoError(t, b.do("CONFIG", "SET", "maxmemory", "1").Error())
	require.Equal(t, []string{"1:A:", "1:A:text", "1:A:1:60000:32"}, b.roll(t, "A", "", 100).Entries)
	require.NoError(t, b.do("CONFIG", "SET", "maxmemory", "0").Error())
	for _, token := range []string{"", "text", "-5", "1e15", "99999999999999999999", "0x00000000000000"} {
		require.NoError(t, b.do("SET", b.lock.All()[2], token).Error())
		require.Zero(t, b.roll(t, "A", "", 100).After, token)
	}
	require.NoError(t, b.do("SET", b.lock.All()[1], "foreign").Error())
	_, err := b.conn.Roll(t.Context(), b.lock, "A", "", 100)
	require.Equal(t, lua.WrongType, lua.Classify(err), err)
	require.False(t, lua.Passing(err))
	require.NoError(t, b.do("DEL", b.lock.All()[1], b.lock.All()[2]).Error())
	require.NoError(t, b.do("RPUSH", b.lock.All()[2], "foreign").Error())
	require.Zero(t, b.roll(t, "A", "", 100).After)
}

// While a slot moves, a queue that may be on the other side is not taken for one in which nobody waits.
// Rule 4.
func TestRollInAMovingSlot(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	for _, family := range []lua.Family{lua.Locks, lua.ReadWrite} {
		for first, others := range map[string]string{"queue": "name", "name": "queue"} {
			t.Run(family.String()+", "+first+" first", func(t *testing.T) {
				name := fmt.Sprint("roll ", family, first)
				conn, k := sharded(t, c, family, name)
				for _, owner := range []string{"H:1", "A:1"} {
					_, err := conn.Acquire(t.Context(), k, shared(owner), 0, lua.First)
					require.NoError(t, err)
				}
				keys := map[string]string{"name": name, "queue": k.All()[1]}
				seen := func() {
					r, err := conn.Roll(t.Context(), k, "A", "", 10)
					require.NoError(t, err)
					require.Equal(t, []string{shared("A:1").Entry()}, r.Entries)
				}
				m := c.Move(t, name)
				seen()
				m.Key(t, k.All()[2])
				seen()
				m.Key(t, keys[first])
				_, err := conn.Roll(t.Context(), k, "A", "", 10)
				require.Equal(t, lua.Refused, lua.Classify(err), err)
				require.True(t, lua.Passing(err))
				m.Key(t, keys[others])
				seen()
				moved(t, m)
				seen()
			})
		}
	}
}

// Whom nothing can have queued is queued without a search, but may own what it asks for: then it is told so.
// Rule 4.
func TestUnqueued(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b, rw := newBench(t, s), newRW(t, s)
		for _, claim := range []lua.Claim{{Owner: "A:1", Lease: 30_000}, shared("A:1")} {
			require.NoError(t, b.do("FLUSHALL").Error())
			held := b.claim(claim, lua.Try)
			require.Equal(t, held.Token, b.claim(claim, lua.Unqueued).Token)
			require.Zero(t, b.inspect().Length)
			other := claim
			other.Owner = "B:1"
			require.Positive(t, b.claim(other, lua.Unqueued).Sequence)
			require.Equal(t, []string{other.Entry()}, b.inspect().Queue)
		}
		for _, claim := range []lua.Claim{shared("A:1"), reads("A:1")} {
			require.NoError(t, b.do("FLUSHALL").Error())
			held := rw.claim(claim, lua.Try)
			require.Equal(t, held.Token, rw.claim(claim, lua.Unqueued).Token)
			require.Zero(t, rw.inspect().Length)
			require.Positive(t, rw.claim(shared("B:1"), lua.Unqueued).Sequence)
			require.Equal(t, []string{shared("B:1").Entry()}, rw.inspect().Queue)
		}
		for _, family := range []lua.Family{lua.Leased, lua.Plain} {
			require.NoError(t, b.do("FLUSHALL").Error())
			p := newSem(t, s, family)
			p.set(1)
			held := p.take("A:1", "1", lua.Try)
			require.Equal(t, held.Token, p.take("A:1", "1", lua.Unqueued).Token)
			require.Positive(t, p.take("B:1", "1", lua.Unqueued).Sequence)
			require.Equal(t, []string{request("B:1", "1").Entry()}, p.entries(t))
		}
	})
}
