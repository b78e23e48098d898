package lua_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// day is a period that no test is in the way of, in ms.
const day = 86_400_000

// tick begins a run twice: the second one is a copy. Whoever has the same token all the same begins nothing.
func (r *runs) tick(ticks lua.Ticks, token int64) lua.Tick {
	r.t.Helper()
	got, err := r.conn.Tick(r.t.Context(), r.keys, ticks, token, false)
	require.NoError(r.t, err)
	twin, err := r.conn.Tick(r.t.Context(), r.keys, ticks, token, false)
	require.NoError(r.t, err)
	again, err := r.conn.Tick(r.t.Context(), r.keys, ticks, token, true)
	require.NoError(r.t, err)
	if got.At > 0 {
		require.Equal(r.t, got.At, again.At, "a copy")
		require.Equal(r.t, got.Attempt, again.Attempt, "a copy")
		require.Equal(r.t, lua.Tick{Stale: true, Last: token}, twin)
	} else {
		require.Zero(r.t, again.At)
	}
	return got
}

func (r *runs) over(ticks lua.Ticks, token int64) bool {
	r.t.Helper()
	_, end, err := r.conn.FinishTick(r.t.Context(), r.keys, ticks, token, "")
	require.NoError(r.t, err)
	_, again, err := r.conn.FinishTick(r.t.Context(), r.keys, ticks, token, "")
	require.NoError(r.t, err)
	require.Equal(r.t, end, again, "a copy")
	return end == lua.EndRecorded
}

func (r *runs) due(ticks lua.Ticks, by string) lua.Due {
	r.t.Helper()
	d, err := r.conn.Due(r.t.Context(), r.keys, ticks, 10_000, by)
	require.NoError(r.t, err)
	return d
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// back sets the last tick that is over to so many periods before the last one.
func (r *runs) back(ticks lua.Ticks, periods int64) (last int64) {
	r.t.Helper()
	now, err := r.conn.Time(r.t.Context(), nil)
	require.NoError(r.t, err)
	last = now / 1000 / ticks.Period * ticks.Period
	require.NoError(r.t, r.do("HSET", r.record(), "last", decimal(last-periods*ticks.Period)).Error())
	return last
}

// Of all who ask one is told to take the lock, and told so again; the others when to look again.
// Rule 47.
func TestDue(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: day, Missed: lua.MissedOnce}
		for range 2 {
			d := r.due(ticks, "a")
			require.Positive(t, d.Next, "it begins with the next tick")
			require.LessOrEqual(t, d.Next, int64(day))
			require.Equal(t, lua.Due{Next: d.Next}, d)
		}
		r.kept(604_800_000 + 2*day)
		r.back(ticks, 1)
		for range 2 {
			require.True(t, r.due(ticks, "a").Take)
			d := r.due(ticks, "b")
			require.Positive(t, d.Next)
			require.Greater(t, d.Dead, int64(9000))
			require.LessOrEqual(t, d.Dead, int64(10_000))
		}
		require.NoError(t, r.do("HSET", r.record(), "told", "1").Error(), "long ago")
		require.True(t, r.due(ticks, "b").Take)
		require.NoError(t, r.do("HSET", r.record(), "told", "9007199254740990").Error(), "before the clock was set back")
		require.True(t, r.due(ticks, "a").Take)

		require.NoError(t, r.do("HSET", r.keys.Name(), "x:1", "t5+0/10000", "some", "1").Error())
		require.EqualValues(t, 10_001, r.due(ticks, "a").Dead, "the lock is held, for ever")
		require.NoError(t, r.do("PEXPIRE", r.keys.Name(), "5000").Error())
		d := r.due(ticks, "a")
		require.Greater(t, d.Dead, int64(4000))
		require.LessOrEqual(t, d.Dead, int64(5001))

		require.NoError(t, r.do("PEXPIRE", r.keys.Name(), "90000").Error(), "the clock was set back")
		require.NoError(t, r.do("HDEL", r.record(), "told", "by").Error())
		require.True(t, r.due(ticks, "a").Take, "an attempt cuts it")
		for _, by := range []string{"a", "b"} { // where that did not help
			d := r.due(ticks, by)
			require.Greater(t, d.Dead, int64(9000), by)
			require.LessOrEqual(t, d.Dead, int64(10_000), by)
		}
		require.NoError(t, r.do("HDEL", r.record(), "told", "by").Error())
		require.NoError(t, r.do("DEL", r.keys.Name()).Error())

		require.Positive(t, r.tick(ticks, 5).At)
		require.True(t, r.due(ticks, "b").Take, "its process has given up the lock")
		require.True(t, r.over(ticks, 5))
		d = r.due(ticks, "b")
		require.Equal(t, lua.Due{Next: d.Next}, d)
	})
}

// A tick is run once, by the run that has begun last.
// Rule 45.
func TestTick(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: day, Missed: lua.MissedAll}
		require.Positive(t, r.tick(ticks, 1).Next, "it begins with the next tick")
		last := r.back(ticks, 2)
		require.Equal(t, lua.Tick{At: last - day, Attempt: 1}, r.tick(ticks, 5))
		require.Equal(t, lua.Tick{At: last - day, Attempt: 2}, r.tick(ticks, 6), "the first one died")
		require.Equal(t, lua.Tick{Stale: true, Last: 6}, r.tick(ticks, 5))
		require.False(t, r.over(ticks, 5), "stale")
		require.True(t, r.over(ticks, 6))
		require.Equal(t, lua.Tick{Stale: true, Last: 6}, r.tick(ticks, 6), "a late copy")
		require.Equal(t, lua.Tick{At: last, Attempt: 1}, r.tick(ticks, 7))
		require.True(t, r.over(ticks, 6), "a late copy: it is over, also when another run has begun since")
		require.True(t, r.over(ticks, 7))
		require.Positive(t, r.tick(ticks, 8).Next)
		require.False(t, r.over(ticks, 8))
	})
}

// Ticks that were missed are run, or one for all of them, or none.
// Rule 47.
func TestMissedTicks(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		token := int64(5)
		for _, missed := range []lua.Missed{lua.MissedAll, lua.MissedOnce, lua.MissedSkip} {
			ticks := lua.Ticks{Period: day, Missed: missed}
			r.tick(ticks, token)
			last := r.back(ticks, 3)
			want := map[lua.Missed][]int64{
				lua.MissedAll: {last - 2*day, last - day, last}, lua.MissedOnce: {last}, lua.MissedSkip: nil,
			}[missed]
			var got []int64
			for {
				token++
				tick := r.tick(ticks, token)
				if tick.At == 0 {
					require.Positive(t, tick.Next, missed)
					break
				}
				got = append(got, tick.At)
				require.True(t, r.over(ticks, token))
			}
			require.Equal(t, want, got, missed)
		}

		// What is late by less than the grace is not missed. What has begun is repeated, however late.
		ticks := lua.Ticks{Period: day, Missed: lua.MissedSkip, Grace: day}
		last := r.back(ticks, 3)
		require.Equal(t, last, r.tick(ticks, token+1).At)
		require.NoError(t, r.do("HSET", r.record(), "tick", decimal(last-2*day), "last", decimal(last-3*day)).Error())
		ticks.Grace = 0
		require.Equal(t, lua.Tick{At: last - 2*day, Attempt: 2}, r.tick(ticks, token+2))
		require.True(t, r.over(ticks, token+2))
		require.Positive(t, r.tick(ticks, token+3).Next, "what became due meanwhile is missed")
	})
}

// A tick whose runs die again and again is over after so many.
// Rule 47.
func TestTickIsDropped(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: day, Missed: lua.MissedAll, Limit: 2}
		r.tick(ticks, 1)
		last := r.back(ticks, 2)
		require.EqualValues(t, 1, r.tick(ticks, 5).Attempt)
		require.EqualValues(t, 2, r.tick(ticks, 6).Attempt)
		// The next tick waits, longer each time, and dies once.
		for n, pause := range []int64{60_000, 120_000, 240_000} {
			token := int64(10 * (n + 1))
			dropped := r.tick(ticks, token)
			require.Equal(t, lua.Tick{Dropped: last - day, Next: dropped.Next}, dropped)
			require.LessOrEqual(t, dropped.Next, pause)
			require.Greater(t, dropped.Next, pause-10_000)
			require.Zero(t, r.tick(ticks, token+1).At, "it waits")
			require.False(t, r.due(ticks, "a").Take)
			require.False(t, r.over(ticks, token-1))
			require.NoError(t, r.do("HSET", r.record(), "held", "1", "last", decimal(last-2*day)).Error()) // it has waited
			require.Equal(t, lua.Tick{At: last - day, Attempt: 1}, r.tick(ticks, token+2))
		}
		require.Equal(t, "3", r.field("row"))
	})
}

// A run that has returned ends the pauses, and so does a tick that is not due for longer than they are.
// Rule 47.
func TestPauseAfterDeathsEnds(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: day, Missed: lua.MissedAll, Limit: 1}
		r.tick(ticks, 1)
		r.back(ticks, 3)
		require.Positive(t, r.tick(ticks, 5).At)
		require.Positive(t, r.tick(ticks, 6).Dropped)
		for _, held := range []string{"9007199254740990", "1"} { // the clock was set back since
			require.NoError(t, r.do("HSET", r.record(), "held", held).Error())
			require.Equal(t, held != "1", r.due(ticks, "a").Next > 50_000)
			require.Less(t, r.field("held"), "9007199254740990", "the pause has an end")
		}
		require.Positive(t, r.tick(ticks, 7).At)
		require.True(t, r.over(ticks, 7))
		for _, field := range []string{"row", "held", "holds"} {
			require.Error(t, r.do("HGET", r.record(), field).Error(), field)
		}
		require.Positive(t, r.tick(ticks, 8).At)
	})
}

// A run that gave up has not died, and one whose function was not entered is none. A copy says no more.
// Rule 47.
func TestRunThatLives(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: day, Missed: lua.MissedAll, Limit: 1}
		back := func(token int64, entered bool) {
			for range 2 {
				require.NoError(t, r.conn.BackTick(t.Context(), r.keys, ticks, token, "", entered))
			}
		}
		r.tick(ticks, 1)
		last := r.back(ticks, 1)
		require.Equal(t, lua.Tick{At: last, Attempt: 1}, r.tick(ticks, 5))
		back(5, true)
		require.Equal(t, lua.Tick{At: last, Attempt: 2}, r.tick(ticks, 6), "as often as that happens")
		back(6, false)
		require.Equal(t, lua.Tick{At: last, Attempt: 2}, r.tick(ticks, 7))
		back(7, true)
		back(6, true) // which is over
		back(9, false)
		require.Equal(t, lua.Tick{Stale: true, Last: 9}, r.tick(ticks, 9), "it comes later than that it does not begin")
		require.Equal(t, lua.Tick{At: last, Attempt: 3}, r.tick(ticks, 10))
		require.Positive(t, r.tick(ticks, 11).Dropped)
		require.NoError(t, r.do("HDEL", r.record(), "held").Error())
		r.back(ticks, 1)
		require.Equal(t, lua.Tick{At: last, Attempt: 1}, r.tick(ticks, 12))
		back(12, false)
		require.Equal(t, lua.Tick{At: last, Attempt: 1}, r.tick(ticks, 13), "nothing has begun")
	})
}

// Of ticks without number that were missed the last thousand are run.
// Rule 47.
func TestTooManyWereMissed(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: 3_600_000, Missed: lua.MissedAll}
		r.tick(ticks, 1)
		for n, missed := range map[int64]int64{1000: 0, 1001: 1, 1500: 500} {
			last := r.back(ticks, n)
			token := n * 2
			require.NoError(t, r.do("HDEL", r.record(), "tick", "attempt", "token").Error())
			require.Equal(t, lua.Tick{At: last - 999*ticks.Period, Attempt: 1, Missed: missed}, r.tick(ticks, token))
			require.True(t, r.over(ticks, token))
			require.Equal(t, lua.Tick{At: last - 998*ticks.Period, Attempt: 1}, r.tick(ticks, token+1))
		}
	})
}

// The record says of a run whether it was finished, until another one was.
// Rule 47.
func TestFinishOfATickIsOneFact(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: day, Missed: lua.MissedAll}
		end := func(token int64) lua.Ended {
			_, end, err := r.conn.FinishTick(t.Context(), r.keys, ticks, token, "")
			require.NoError(t, err)
			return end
		}
		r.tick(ticks, 1)
		r.back(ticks, 3)
		require.Positive(t, r.tick(ticks, 5).At)
		require.Equal(t, lua.EndForgotten, end(4), "the record begins later")
		require.Equal(t, lua.EndRecorded, end(5))
		require.Positive(t, r.tick(ticks, 6).At)
		require.Positive(t, r.tick(ticks, 7).At)
		require.Equal(t, lua.EndRecorded, end(5))
		require.Equal(t, lua.EndStale, end(6))
		require.Equal(t, lua.EndRecorded, end(7))
		require.Equal(t, lua.EndRecorded, end(7))
		require.Equal(t, lua.EndForgotten, end(5))
		require.Equal(t, lua.EndForgotten, end(6))
	})
}

// A clock that is set back repeats no tick. One that was wrong by more than ten minutes holds up no job.
// Rule 47.
func TestTicksWhenTheClockWasAhead(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: 1000, Missed: lua.MissedAll}
		r.tick(ticks, 1)
		r.back(ticks, -500)
		require.Greater(t, r.due(ticks, "a").Next, int64(490_000))
		require.Greater(t, r.tick(ticks, 5).Next, int64(490_000))
		r.back(ticks, -700)
		require.Less(t, r.due(ticks, "a").Next, int64(1001))
		r.back(ticks, -700)
		require.Less(t, r.tick(ticks, 6).Next, int64(1001))
	})
}

// Nor does a run that had begun while the clock was wrong: its process goes on from the clock when it is
// over, or given up.
// Rule 47.
func TestRunOfATickThatIsFarAhead(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: day, Missed: lua.MissedAll, Limit: 2}
		begun := func(token, attempt int64) {
			r.back(ticks, 1)
			at := r.tick(ticks, token).At
			require.Positive(t, at)
			require.NoError(t, r.do("HSET", r.record(), "tick", decimal(at+9*day), "last", decimal(at+8*day), "attempt", decimal(attempt)).Error())
		}
		begun(5, 1)
		next, end, err := r.conn.FinishTick(t.Context(), r.keys, ticks, 5, "")
		require.NoError(t, err)
		require.Equal(t, lua.EndRecorded, end)
		require.LessOrEqual(t, next, int64(day))

		begun(6, 2)
		dropped, err := r.conn.Tick(t.Context(), r.keys, ticks, 7, true)
		require.NoError(t, err)
		require.Positive(t, dropped.Dropped)
		require.Positive(t, dropped.Next)
		require.LessOrEqual(t, dropped.Next, int64(day))
	})
}

// The delay of a tick is below the longest, and the same for all who ask. It follows from the tick and the
// name. All ticks come, one after the other.
// Rule 47.
func TestDelayedTicks(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		ticks := lua.Ticks{Period: day, Delay: day - 1, Missed: lua.MissedAll}
		delays := map[int64]bool{}
		for range 30 {
			ticks.Seed = uint16(rand.IntN(65521))
			require.NoError(t, r.do("DEL", r.record()).Error())
			first, again := r.due(ticks, "a").Next, r.due(ticks, "b").Next
			require.InDelta(t, first, again, 5000)
			require.Less(t, first, int64(2*day))
			require.Positive(t, first)
			delays[first/10_000] = true
			r.back(ticks, 2)
			tick := r.tick(ticks, 5)
			require.Positive(t, tick.At, "that of yesterday is due at any time of today")
			require.Zero(t, tick.At%day)
		}
		require.Greater(t, len(delays), 20, "they differ")
	})
}

// Ticks of a real clock: they come one after the other, and never early.
// Rule 47.
func TestTicksOfAClock(t *testing.T) {
	redistest.Together(t)
	r := &runs{t: t, conn: lua.Conn{Client: redistest.New(t).Client(t)}}
	var err error
	r.keys, err = lua.NewKeys(lua.RunTicks, "clock", false)
	require.NoError(t, err)
	ticks := lua.Ticks{Period: 20, Delay: 10, Seed: 7, Missed: lua.MissedAll}
	var last, token int64
	for token < 25 {
		d := r.due(ticks, "a")
		if !d.Take {
			<-time.After(time.Duration(d.Next) * time.Millisecond)
			continue
		}
		token++
		tick := r.tick(ticks, token)
		now, err := r.conn.Time(t.Context(), nil)
		require.NoError(t, err)
		require.LessOrEqual(t, tick.At, now/1000)
		if last > 0 {
			require.Equal(t, last+20, tick.At)
		}
		last = tick.At
		require.True(t, r.over(ticks, token))
	}
}

// Where no period says when ticks are, the client lists them by the clock that the script tells, and by the last tick that is
// over.
// Rule 47.
func TestTicksAreListed(t *testing.T) {
	eachRuns(t, lua.RunTicks, func(t *testing.T, r *runs) {
		const hour = 3_600_000
		asked := 0
		var told [2]int64
		listed := lua.Ticks{Missed: lua.MissedSkip, Grace: hour, Limit: 2, Listed: func(now, last int64) []int64 {
			if asked++; asked == 1 {
				return []int64{1, 2} // as a client does whose clock is wrong
			}
			told = [2]int64{now, last}
			from := now / hour * hour
			if last > 0 && last < from {
				from = last
			}
			var all []int64
			for at := from; ; at += hour {
				if all = append(all, at); at > now && at > last {
					return all
				}
			}
		}}
		server, err := r.conn.Time(t.Context(), nil)
		require.NoError(t, err)
		due := r.due(listed, "a")
		require.False(t, due.Take, "a job begins with the tick after its first look")
		require.Equal(t, 2, asked)
		require.InDelta(t, server/1000, told[0], minute)
		require.Zero(t, told[1])
		require.InDelta(t, hour-told[0]%hour, due.Next, minute)

		last := told[0] / hour * hour
		require.NoError(t, r.do("HSET", r.record(), "last", decimal(last-3*hour)).Error())
		require.True(t, r.due(listed, "a").Take)
		skipped := r.tick(listed, 5)
		require.Equal(t, last, skipped.At, "the last one, which is not missed yet")
		require.True(t, r.over(listed, 5))
		require.Equal(t, decimal(last), r.field("last"))

		all := listed
		all.Missed, asked = lua.MissedAll, 0
		require.NoError(t, r.do("HSET", r.record(), "last", decimal(last-3*hour)).Error())
		for token := int64(6); token < 9; token++ {
			require.Equal(t, last+(token-8)*hour, r.tick(all, token).At, "one after the other")
			require.Equal(t, last+(token-9)*hour, told[1])
			require.True(t, r.over(all, token))
			asked = 0
		}
		require.Zero(t, r.tick(all, 9).At)
		nothing := listed
		nothing.Listed = func(int64, int64) []int64 { return []int64{1, 2} }
		_, err = r.conn.Due(t.Context(), r.keys, nothing, 10_000, "a")
		require.ErrorContains(t, err, "LATCHKEY_TICKS", "it is not asked for ever")
	})
}
