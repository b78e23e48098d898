package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// bid is what an acquire that begins a run is answered.
type bid struct {
	lua.Acquired

	begun   lua.Begun
	settled bool
	since   int64
}

// acquire sends one twice: the second one is a copy. What it says of the clock is left out.
func (r *runs) acquire(owner string, mode lua.Mode, b lua.Beginning) bid {
	r.t.Helper()
	send := func(mode lua.Mode) (got bid) {
		var err error
		b.Kept, b.Least = 2*minute, minute
		got.Acquired, got.begun, got.settled, got.since, err = r.conn.AcquireOnce(r.t.Context(), r.keys, lua.Claim{Owner: owner, Lease: 10_000}, 0, mode, b)
		require.NoError(r.t, err)
		require.Equal(r.t, got.begun.Attempt > 0, got.begun.Now > 1e15)
		require.Greater(r.t, got.Now, int64(1e15))
		got.begun.Now, got.Now = 0, 0
		return got
	}
	first, again := send(mode), send(mode)
	if first.Token > 0 && first.begun.Wait == 0 {
		require.Equal(r.t, first.Token, again.Token)
		require.Equal(r.t, first.begun, again.begun, "a copy")
	}
	require.Equal(r.t, first.settled, again.settled)
	return first
}

func (r *runs) owner() string {
	r.t.Helper()
	owners, err := r.do("HKEYS", r.keys.Name()).AsStrSlice()
	require.NoError(r.t, err)
	if len(owners) == 0 {
		return ""
	}
	return owners[0]
}

func (r *runs) free() {
	r.t.Helper()
	lock, err := lua.NewKeys(lua.Locks, r.keys.Name(), false)
	require.NoError(r.t, err)
	require.NoError(r.t, r.do("DEL", lock.All()[0], lock.All()[1]).Error())
}

// An acquire takes the lock and begins a run, or leaves the lock alone where that is of no use.
// Rule 45.
func TestAcquireBegins(t *testing.T) {
	for _, family := range []lua.Family{lua.RunOnce, lua.RunShared} {
		eachRuns(t, family, func(t *testing.T, r *runs) {
			first := r.acquire("A:1", lua.First, lua.Beginning{})
			require.Equal(t, lua.Begun{Attempt: 1}, first.begun)
			require.Equal(t, "A:1", r.owner())
			r.kept(2 * minute)
			require.Equal(t, lua.Begun{Stale: true, Last: first.Token}, begin(r, first.Token, false), "it is another's, who has the same token")
			require.Equal(t, lua.Begun{Attempt: 1}, begin(r, first.Token, true))

			queued := r.acquire("B:1", lua.First, lua.Beginning{})
			require.True(t, queued.Queued)
			require.Equal(t, lua.Begun{}, queued.begun)
			require.Zero(t, r.acquire("C:1", lua.Try, lua.Beginning{}).Token)
			require.Equal(t, decimal(first.Token), r.field("token"))

			number := r.finish(first.Token, &lua.Outcome{Value: "x"}, 0)
			r.free()
			done := r.acquire("D:1", lua.First, lua.Beginning{})
			require.Equal(t, bid{begun: lua.Begun{Outcome: &lua.Outcome{Value: "x", Number: number}}, settled: true}, done)
			require.Empty(t, r.owner(), "the lock is left alone")
			older := r.acquire("E:1", lua.First, lua.Beginning{Wanted: lua.Wanted{Since: number}})
			require.Equal(t, lua.Begun{Attempt: 1}, older.begun, "that outcome is too old")
			require.Equal(t, number, older.since)
		})
	}
}

func begin(r *runs, token int64, again bool) lua.Begun {
	r.t.Helper()
	b, err := r.conn.Begin(r.t.Context(), r.keys, token, lua.Wanted{}, 2*minute, again)
	require.NoError(r.t, err)
	b.Now = 0
	return b
}

// Where what there is by now is too old, the record says when the caller came.
func TestAcquireArrives(t *testing.T) {
	eachRuns(t, lua.RunShared, func(t *testing.T, r *runs) {
		holder := r.acquire("A:1", lua.First, lua.Beginning{Wanted: lua.Wanted{Since: lua.AllByNow}})
		require.Equal(t, lua.Begun{Attempt: 1}, holder.begun)
		waits := r.acquire("B:1", lua.First, lua.Beginning{Wanted: lua.Wanted{Since: lua.AllByNow}})
		require.True(t, waits.Queued)
		require.GreaterOrEqual(t, waits.since, holder.since)
		number := r.finish(holder.Token, &lua.Outcome{Value: "x"}, 0)
		require.Greater(t, number, waits.since)
		r.free()
		late := r.acquire("C:1", lua.First, lua.Beginning{Wanted: lua.Wanted{Since: lua.AllByNow}})
		require.Equal(t, lua.Begun{Attempt: 1}, late.begun, "it came after the end")
		require.GreaterOrEqual(t, late.since, number)
	})
}

// A run that failed is counted, and followed by its pause, in an acquire too.
func TestAcquireAfterFailures(t *testing.T) {
	eachRuns(t, lua.RunOnce, func(t *testing.T, r *runs) {
		twice := lua.Beginning{Wanted: lua.Wanted{Limit: 2}}
		first := r.acquire("A:1", lua.First, twice)
		r.finish(first.Token, nil, 40_000)
		r.free()
		paused := r.acquire("B:1", lua.First, twice)
		require.Positive(t, paused.Token, "who waits for the end of a pause has the lock")
		require.InDelta(t, 40_000, paused.begun.Wait, 10_000)
		require.NoError(t, r.do("HSET", r.record(), "until", "0").Error())
		require.Equal(t, lua.Begun{Attempt: 2}, begin(r, paused.Token, false))
		busy := r.acquire("C:1", lua.Try, twice)
		require.False(t, busy.settled, "it may still end well")
		require.Equal(t, lua.Begun{}, busy.begun)
		r.finish(paused.Token, nil, 0)
		r.free()
		none := r.acquire("D:1", lua.First, twice)
		require.Equal(t, bid{begun: lua.Begun{Exhausted: 2}, settled: true}, none)
		require.Empty(t, r.owner())
		require.Equal(t, lua.Begun{Attempt: 1}, r.acquire("E:1", lua.First, lua.Beginning{Wanted: lua.Wanted{Limit: 2, Edition: 7, Since: 6}}).begun, "another edition")
		require.Equal(t, "7", r.field("edition"))
	})
}

// An acquire that was not answered, and whose function was not entered, is no attempt: whether it came before that was
// said, or comes after.
func TestAcquireWithoutAnswer(t *testing.T) {
	eachRuns(t, lua.RunOnce, func(t *testing.T, r *runs) {
		back := func(owner string) {
			t.Helper()
			for range 2 { // the second one is a copy
				require.NoError(t, r.conn.Back(t.Context(), r.keys, 0, owner, minute))
			}
		}
		first := r.acquire("A:1", lua.First, lua.Beginning{})
		back("A:1")
		require.Equal(t, lua.Begun{}, r.look(1))
		require.Equal(t, lua.Begun{Stale: true, Last: first.Token}, begin(r, first.Token, true))
		r.free()

		back("B:1")
		late := r.acquire("B:1", lua.First, lua.Beginning{})
		require.Positive(t, late.Token, "its lock is cancelled by another script")
		require.Equal(t, lua.Begun{}, late.begun)
		r.free()
		over := r.acquire("C:1", lua.First, lua.Beginning{Until: 1})
		require.Positive(t, over.Token)
		require.Equal(t, lua.Begun{}, over.begun, "its sender does not wait any more")
		r.free()

		second := r.acquire("D:1", lua.First, lua.Beginning{})
		require.Equal(t, lua.Begun{Attempt: 1}, second.begun)
		back("B:1") // of another
		require.Equal(t, lua.Begun{Attempt: 1}, begin(r, second.Token, true), "it runs")
		require.Positive(t, r.finish(second.Token, &lua.Outcome{Value: "x"}, 0))
	})
	eachRuns(t, lua.RunOnce, func(t *testing.T, r *runs) {
		require.NoError(t, r.conn.Back(t.Context(), r.keys, 0, "A:1", minute))
		r.kept(minute)
		require.Equal(t, lua.Begun{}, r.look(1))
		require.Equal(t, lua.Begun{}, r.acquire("A:1", lua.First, lua.Beginning{}).begun)
	})
}

// The same of a tick.
// Rule 47.
func TestAcquireBeginsTicks(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: day, Missed: lua.MissedOnce, Limit: 3}
		acquire := func(owner string, until int64) (lua.Acquired, lua.Tick, bool) {
			t.Helper()
			a, tick, told, err := r.conn.AcquireTick(t.Context(), r.keys, lua.Claim{Owner: owner, Lease: 10_000}, 0, lua.Try, ticks, until)
			require.NoError(t, err)
			return a, tick, told
		}
		r.due(ticks, "a")
		a, tick, told := acquire("A:1", 0)
		require.True(t, told)
		require.Positive(t, a.Token)
		require.Zero(t, tick.At, "nothing is due")
		require.Positive(t, tick.Next)
		r.free()

		r.back(ticks, 1)
		a, tick, told = acquire("B:1", 0)
		require.True(t, told)
		require.Positive(t, tick.At)
		require.EqualValues(t, 1, tick.Attempt)
		copied, again, _ := acquire("B:1", 0)
		require.Equal(t, a.Token, copied.Token)
		require.Equal(t, tick, again)
		_, _, told = acquire("C:1", 0)
		require.False(t, told, "it is held")

		for range 2 { // the second one is a copy
			require.NoError(t, r.conn.BackTick(t.Context(), r.keys, ticks, 0, "B:1", false))
		}
		r.free()
		_, _, told = acquire("D:1", 1)
		require.False(t, told, "its sender does not wait any more")
		r.free()
		require.NoError(t, r.conn.BackTick(t.Context(), r.keys, ticks, 0, "E:1", false))
		_, _, told = acquire("E:1", 0)
		require.False(t, told)
		r.free()
		a, tick, _ = acquire("F:1", 0)
		require.EqualValues(t, 1, tick.Attempt, "no function was entered before")
		_, end, err := r.conn.FinishTick(t.Context(), r.keys, ticks, a.Token, "")
		require.NoError(t, err)
		require.Equal(t, lua.EndRecorded, end)
	})
}
