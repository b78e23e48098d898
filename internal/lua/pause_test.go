package lua_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// pauses are the commands of the pause of a name. Each is sent twice: the second one is a copy.
type pauses struct {
	*runs

	keys *lua.Keys
	sent int
}

func pausesOf(r *runs) *pauses {
	keys, err := lua.NewKeys(lua.Pauses, r.keys.Name(), false)
	require.NoError(r.t, err)
	return &pauses{runs: r, keys: keys}
}

func (p *pauses) id() string {
	p.sent++
	return "p:" + strconv.Itoa(p.sent)
}

func (p *pauses) pause(lasts int64, by, why string) (id string) {
	id = p.id()
	for range 2 {
		require.NoError(p.t, p.conn.Pause(p.t.Context(), p.keys, id, lasts, by, why))
	}
	return id
}

func (p *pauses) resume() (id string) {
	id = p.id()
	for range 2 {
		require.NoError(p.t, p.conn.Resume(p.t.Context(), p.keys, id))
	}
	return id
}

func (p *pauses) paused() lua.Paused {
	p.t.Helper()
	said, err := p.conn.Paused(p.t.Context(), p.keys)
	require.NoError(p.t, err)
	return said
}

// ttl is for how long the record stays, in ms; -1: for ever.
func (p *pauses) ttl() int64 {
	left, err := p.do("PTTL", p.keys.All()[1]).AsInt64()
	require.NoError(p.t, err)
	return left
}

// A pause lasts until it is ended, or until its end. Copies of its commands that come late change nothing.
// Rule 53.
func TestPause(t *testing.T) {
	eachRuns(t, lua.RunOnce, func(t *testing.T, r *runs) {
		p := pausesOf(r)
		require.Zero(t, p.paused())
		first := p.pause(0, "ann", "a release")
		said := p.paused()
		require.Positive(t, said.Since)
		require.Equal(t, lua.Paused{Since: said.Since, By: "ann", Why: "a release", Again: 10_000}, said)
		require.Greater(t, p.ttl(), int64(9*365*day), "it has no end")

		p.pause(60_000, "bob", "")
		said = p.paused()
		require.Equal(t, lua.Paused{Since: said.Since, Until: said.Since + 60_000_000, By: "bob", Again: 10_000}, said)
		require.Greater(t, p.ttl(), int64(650_000))

		over := p.resume()
		require.Zero(t, p.paused())
		require.Positive(t, p.ttl())
		require.NoError(t, p.conn.Pause(t.Context(), p.keys, p.id(), 0, "cid", ""))
		require.NoError(t, p.conn.Resume(t.Context(), p.keys, over), "a copy that comes late")
		require.Equal(t, "cid", p.paused().By)
		again := p.pause(0, "dan", "")
		p.resume()
		require.NoError(t, p.conn.Pause(t.Context(), p.keys, again, 0, "dan", ""), "a copy that comes late")
		require.Zero(t, p.paused())
		require.NotEqual(t, first, again)

		p.pause(1, "eve", "")
		require.Eventually(t, func() bool { return p.paused() == lua.Paused{} }, time.Minute, time.Millisecond)
	})
}

// While a name is paused no run begins, and no term.
// Rule 53.
func TestPausedBeginsNothing(t *testing.T) {
	for _, family := range []lua.Family{lua.RunOnce, lua.RunShared} {
		eachRuns(t, family, func(t *testing.T, r *runs) {
			p := pausesOf(r)
			require.Equal(t, int64(1), r.begin(5, 0, 0).Attempt)
			p.pause(0, "", "")
			require.Positive(t, r.finish(5, &lua.Outcome{Value: "v"}, 0), "what has begun goes on")
			require.Equal(t, "v", r.begin(6, 0, 0).Outcome.Value, "there is an outcome")
			require.EqualValues(t, 10_000, r.begin(6, lua.AllByNow+1<<52, 0).Wait)
			p.pause(5000, "", "")
			wait := r.begin(7, 1<<52, 0).Wait
			require.Positive(t, wait)
			require.LessOrEqual(t, wait, int64(5000))
			p.resume()
			require.Equal(t, int64(1), r.begin(7, 1<<52, 0).Attempt)
		})
	}
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		p := pausesOf(r)
		ticks := lua.Ticks{Period: day, Missed: lua.MissedOnce}
		r.due(ticks, "a")
		last := r.back(ticks, 1)
		require.True(t, r.due(ticks, "a").Take)
		require.Equal(t, last, r.tick(ticks, 5).At)
		p.pause(0, "", "")
		require.Equal(t, lua.Due{Next: 10_000}, r.due(ticks, "b"), "the run of the tick may die")
		require.Equal(t, lua.Tick{Next: 10_000}, r.tick(ticks, 6))
		require.True(t, r.over(ticks, 5), "what has begun goes on")
		require.Positive(t, r.due(ticks, "b").Next)
		r.back(ticks, 1)
		require.EqualValues(t, 10_000, r.due(ticks, "b").Next)
		require.Equal(t, lua.Tick{Next: 10_000}, r.tick(ticks, 7))
		p.resume()
		require.True(t, r.due(ticks, "b").Take)
		require.Equal(t, lua.Tick{At: last, Attempt: 1}, r.tick(ticks, 8))
	})
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		k, err := lua.NewKeys(lua.Leader, b.lock.Name(), false)
		require.NoError(t, err)
		p := pausesOf(&runs{t, b.conn, k})
		first := b.acquire("A:1", 10_000, lua.First).Token
		p.pause(0, "", "")
		require.Equal(t, lua.Led{Paused: 10_000}, b.lead(t, k, lua.Lead{Token: first, Who: "a", Begins: true}))
		l, err := b.conn.Leading(t.Context(), k)
		require.NoError(t, err)
		require.Zero(t, l, "nothing was written")
		p.resume()
		require.Positive(t, b.lead(t, k, lua.Lead{Token: first, Who: "a", Begins: true}).Since)
		p.pause(0, "", "")
		require.Equal(t, lua.Led{Paused: 10_000}, b.lead(t, k, lua.Lead{Token: first, Who: "a"}), "its term is to end")
	})
}

// What is told of the runs of a job: the last ten, and the one that goes on.
// Rule 53.
func TestHistory(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: day, Missed: lua.MissedAll, Who: `"ann"`}
		inspect := func() (int64, []lua.TickRun) {
			t.Helper()
			next, all, err := r.conn.InspectJob(t.Context(), r.keys)
			require.NoError(t, err)
			for i := range all {
				require.Positive(t, all[i].Began)
				all[i].Began, all[i].Took = 0, 0
			}
			return next, all
		}
		next, all := inspect()
		require.Zero(t, next)
		require.Empty(t, all)
		r.due(ticks, "a")
		last := r.back(ticks, 20)
		r.tick(ticks, 5)
		_, all = inspect()
		at := last - 19*day
		require.Equal(t, []lua.TickRun{{Tick: at, Attempt: 1, Who: `"ann"`, End: lua.RunDied}}, all, "the lock is free")
		require.NoError(t, r.do("HSET", r.keys.Name(), "x:1", "t5+0/10000").Error())
		next, all = inspect()
		require.Equal(t, []lua.TickRun{{Tick: at, Attempt: 1, Who: `"ann"`, End: lua.RunGoesOn}}, all)
		require.Equal(t, at+day, next)

		r.tick(ticks, 6)
		_, all = inspect()
		require.Equal(t, []lua.TickRun{
			{Tick: at, Attempt: 2, Who: `"ann"`, End: lua.RunGoesOn}, {Tick: at, Attempt: 1, Who: `"ann"`, End: lua.RunDied},
		}, all)
		for range 2 { // the second one is a copy
			require.NoError(t, r.conn.BackTick(t.Context(), r.keys, ticks, 6, "", true))
		}
		r.tick(ticks, 7)
		for range 2 {
			_, end, err := r.conn.FinishTick(t.Context(), r.keys, ticks, 7, `"no\ttime"`)
			require.NoError(t, err)
			require.Equal(t, lua.EndRecorded, end)
		}
		r.tick(ticks, 8)
		require.True(t, r.over(ticks, 8))
		next, all = inspect()
		require.Equal(t, []lua.TickRun{
			{Tick: at + day, Attempt: 1, Who: `"ann"`, End: lua.RunDone},
			{Tick: at, Attempt: 3, Who: `"ann"`, End: lua.RunFailed, Text: `"no\ttime"`},
			{Tick: at, Attempt: 2, Who: `"ann"`, End: lua.RunGaveUp},
			{Tick: at, Attempt: 1, Who: `"ann"`, End: lua.RunDied},
		}, all)
		require.Equal(t, at+2*day, next)
		for token := range int64(12) {
			r.tick(ticks, 9+token)
			require.True(t, r.over(ticks, 9+token))
		}
		_, all = inspect()
		require.Len(t, all, 11)
		require.Equal(t, at+13*day, all[0].Tick)
		require.Equal(t, at+3*day, all[10].Tick)

		for _, text := range []string{"rubbish", "-1\t2\t3\t4\to\t\t", "1\t2\t3\t4\tz\t\t", strings.Repeat("x", 1<<20), "1\t2\t3\t4\to\t\t"} {
			require.NoError(t, r.do("LPUSH", r.keys.All()[3], text).Error())
		}
		_, all = inspect()
		require.Len(t, all, 7, "what no version has written is left out")
		require.Equal(t, lua.TickRun{Tick: 1, Attempt: 2, End: lua.RunDone}, all[0])
		r.tick(ticks, 50)
		_, all = inspect()
		require.Equal(t, lua.RunGoesOn, all[0].End)
	})
}

// In a slot that moves a pause that is on the other side is not taken for none.
// Rule 53.
func TestPauseInAMovingSlot(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	conn, lock := sharded(t, c, lua.Locks, "one")
	_, k := sharded(t, c, lua.Pauses, "one")
	_, err := conn.Acquire(t.Context(), lock, lua.Claim{Owner: "a:1", Lease: 10_000, Longest: 9}, 0, lua.First)
	require.NoError(t, err) // the name itself is on this side until it is moved
	require.NoError(t, conn.Pause(t.Context(), k, "p:1", 0, "ann", ""))
	m := c.Move(t, "one")
	said, err := conn.Paused(t.Context(), k)
	require.NoError(t, err)
	m.Key(t, k.All()[1])
	_, err = conn.Paused(t.Context(), k)
	require.Equal(t, lua.Refused, lua.Classify(err), err)
	require.Equal(t, lua.Refused, lua.Classify(conn.Pause(t.Context(), k, "p:2", 0, "bob", "")))
	require.Equal(t, lua.Refused, lua.Classify(conn.Resume(t.Context(), k, "p:3")))
	m.Key(t, "one")
	for _, key := range m.Left(t) {
		m.Key(t, key)
	}
	again, err := conn.Paused(t.Context(), k)
	require.NoError(t, err)
	require.Equal(t, said, again)
	require.NoError(t, conn.Resume(t.Context(), k, "p:3"))
	m.Assign(t)
	again, err = conn.Paused(t.Context(), k)
	require.NoError(t, err)
	require.Zero(t, again)
}
