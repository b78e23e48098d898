package lua_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// gatherer sends requests for locks of several names together.
type gatherer struct {
	*bench
	locks map[string]*lua.Keys
}

func newGatherer(t *testing.T, s *redistest.Server, names ...string) *gatherer {
	t.Helper()
	g := &gatherer{newBench(t, s), map[string]*lua.Keys{}}
	for _, name := range names {
		k, err := lua.NewKeys(lua.Locks, name, false)
		require.NoError(t, err)
		g.locks[name] = k
	}
	return g
}

func (g *gatherer) take(name, owner string) lua.Ready {
	g.t.Helper()
	r, ok := g.locks[name].ReadyToTake(lua.Claim{Owner: owner, Lease: 10_000, Clock: time.Now().UnixMicro()}, 0, lua.First)
	require.True(g.t, ok)
	return r
}

func (g *gatherer) end(name, owner string) lua.Ready {
	g.t.Helper()
	r, ok := g.locks[name].ReadyToEnd(lua.Ending{Owner: owner})
	require.True(g.t, ok)
	return r
}

func (g *gatherer) send(requests ...lua.Ready) []int64 {
	g.t.Helper()
	replies, err := g.conn.Gathered(g.t.Context(), requests)
	require.NoError(g.t, err)
	return replies
}

// alone is an acquire by the script of its own.
func (g *gatherer) alone(name, owner string) lua.Acquired {
	g.t.Helper()
	a, err := g.conn.Acquire(g.t.Context(), g.locks[name], lua.Claim{Owner: owner, Lease: 10_000}, 0, lua.First)
	require.NoError(g.t, err)
	return a
}

// state is what Redis has of a name, without tokens and times.
func (g *gatherer) state(name string) string {
	g.t.Helper()
	text := ""
	for _, key := range g.locks[name].All()[:3] {
		kind, err := g.do("TYPE", key).ToString()
		require.NoError(g.t, err)
		ttl, err := g.do("PTTL", key).AsInt64()
		require.NoError(g.t, err)
		text += fmt.Sprintf("%s %d; ", kind, (ttl+5000)/10_000)
	}
	return text
}

// Requests that go together do what they do alone: to take what is free, and to end what nobody waits for.
// A copy does nothing a second time.
// Rule 51.
func TestGathered(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) { // tokens are times: where time stands still no two follow each other
		g := newGatherer(t, s, "a", "b", "c")
		require.Positive(t, g.alone("c", "A:9").Token)
		first := g.send(g.take("a", "A:1"), g.take("b", "A:2"), g.take("a", "A:3"), g.take("c", "A:4"))
		require.Positive(t, first[0])
		require.Positive(t, first[1])
		require.Equal(t, []int64{0, 0}, first[2:], "somebody has it")
		require.Equal(t, g.state("c"), g.state("a"), "nothing differs from what the script of its own leaves")
		require.Equal(t, map[string]string{"A:1": fmt.Sprintf("t%d/10000", first[0])}, asMap(t, g.do("HGETALL", "a")))
		require.Equal(t, []int64{0}, g.send(g.take("a", "A:1")), "the script of its own answers a copy")
		require.Equal(t, first[0], g.alone("a", "A:1").Token)

		require.Equal(t, []int64{0, 1, 0}, g.send(g.end("a", "A:2"), g.end("b", "A:2"), g.end("b", "A:2")))
		next := g.send(g.take("b", "A:5"), g.end("b", "A:5"), g.take("b", "A:6"))
		require.Equal(t, int64(1), next[1])
		require.Greater(t, next[0], first[1])
		require.Greater(t, next[2], next[0])
	})
}

// Who waits is not passed, and is granted the lock by a script of its own.
// Rule 51.
func TestGatheredLeavesWaitersAlone(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		g := newGatherer(t, s, "a")
		require.Positive(t, g.alone("a", "A:1").Token)
		require.True(t, g.alone("a", "B:1").Queued)
		require.Equal(t, []int64{0}, g.send(g.end("a", "A:1")))
		require.NoError(t, g.do("DEL", "a").Error())
		require.Equal(t, []int64{0}, g.send(g.take("a", "A:2")))
	})
}

// What is left undone changes nothing: the data of somebody else, and a token that the clock cannot follow.
// The others are not concerned.
// Rule 51.
func TestGatheredLeavesDataAlone(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		g := newGatherer(t, s, "a", "b", "c", "d", "e")
		token := g.locks["b"].All()[2]
		ahead := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
		require.NoError(t, g.do("SET", "a", "foreign").Error())
		require.NoError(t, g.do("SET", token, ahead, "PX", "80000000").Error())
		require.NoError(t, g.do("RPUSH", g.locks["c"].All()[2], "foreign").Error())
		require.NoError(t, g.do("SET", g.locks["d"].All()[2], "word").Error())
		states := func() []string { return []string{g.state("a"), g.state("b"), g.state("c"), g.state("d")} }
		before := states()
		replies := g.send(g.take("a", "A:1"), g.take("b", "A:2"), g.end("a", "A:1"), g.take("c", "A:3"), g.take("d", "A:4"), g.take("e", "A:5"))
		require.Equal(t, []int64{0, 0, 0, 0, 0}, replies[:5])
		require.Positive(t, replies[5])
		require.Equal(t, before, states())
		for key, want := range map[string]string{token: ahead, g.locks["d"].All()[2]: "word"} {
			value, err := g.do("GET", key).ToString()
			require.NoError(t, err)
			require.Equal(t, want, value)
		}
	})
}

// A name whose companions the user may not touch ends no script: what was done for others before is known.
// Rule 51.
func TestGatheredWithoutPermission(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	g := newGatherer(t, s, "a", "b")
	require.Positive(t, g.alone("a", "A:1").Token)
	acl := []string{"ACL", "SETUSER", "default", "resetkeys", "~b"}
	for _, key := range g.locks["a"].All() {
		acl = append(acl, "~"+key)
	}
	require.NoError(t, g.do(acl...).Error())
	require.Equal(t, []int64{1, 0, 0}, g.send(g.end("a", "A:1"), g.take("b", "A:2"), g.end("b", "A:2")))
}

// Only what is plain goes with others.
func TestReady(t *testing.T) {
	lock := func(family lua.Family, name string, sharded bool) *lua.Keys {
		k, err := lua.NewKeys(family, name, sharded)
		require.NoError(t, err)
		return k
	}
	turns := lock(lua.Locks, "a", false)
	turns.TakesTurns()
	plain := lua.Claim{Owner: "A:1", Lease: 1000, Clock: 7}
	changed := func(f func(*lua.Claim)) lua.Claim { c := plain; f(&c); return c }
	for _, k := range []*lua.Keys{lock(lua.Locks, "{a}b", false), lock(lua.Locks, "a", true), lock(lua.ReadWrite, "a", false), turns} {
		_, ok := k.ReadyToTake(plain, 0, lua.First)
		require.False(t, ok)
		_, ok = k.ReadyToEnd(lua.Ending{Owner: "A:1"})
		require.False(t, ok)
	}
	k := lock(lua.Locks, "a", false)
	_, ok := k.ReadyToTake(plain, 6, lua.First)
	require.True(t, ok)
	for _, c := range []lua.Claim{
		changed(func(c *lua.Claim) { c.Clock = 6 }),
		changed(func(c *lua.Claim) { c.Longest = 5 }), changed(func(c *lua.Claim) { c.Permits = 1 }), changed(func(c *lua.Claim) { c.Lingers = true }),
	} {
		_, ok := k.ReadyToTake(c, 6, lua.First)
		require.False(t, ok)
	}
	_, ok = k.ReadyToTake(plain, 6, lua.Again)
	require.False(t, ok)
	for _, e := range []lua.Ending{{Owner: "A:1", Entry: "1:A:1:1000:0"}, {Owner: "A:1", Rest: 1}, {Owner: "A:1", Announce: true}} {
		_, ok := k.ReadyToEnd(e)
		require.False(t, ok)
	}
}
