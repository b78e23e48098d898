package lua_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// runs runs the scripts of package once on a name.
type runs struct {
	t    *testing.T
	conn lua.Conn
	keys *lua.Keys
}

// minute is longer than a test, in ms.
const minute = 60_000

func eachRuns(t *testing.T, family lua.Family, test func(t *testing.T, r *runs)) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		k, err := lua.NewKeys(family, "orders:{42} x", false)
		require.NoError(t, err)
		test(t, &runs{t, lua.Conn{Client: s.Client(t)}, k})
	})
}

func (r *runs) do(args ...string) rueidis.RedisResult {
	r.t.Helper()
	return r.conn.Client.Do(r.t.Context(), r.conn.Client.B().Arbitrary(args...).Build())
}

func (r *runs) record() string { return r.keys.All()[1] }

func (r *runs) field(name string) string {
	r.t.Helper()
	text, err := r.do("HGET", r.record(), name).ToString()
	require.NoError(r.t, err)
	return text
}

// kept checks for how many ms the record is kept.
func (r *runs) kept(ms int64) {
	r.t.Helper()
	ttl, err := r.do("PTTL", r.record()).AsInt64()
	require.NoError(r.t, err)
	require.Greater(r.t, ttl, ms-10_000)
	require.LessOrEqual(r.t, ttl, ms)
}

func (r *runs) look(limit int64) lua.Begun {
	r.t.Helper()
	b, err := r.conn.Look(r.t.Context(), r.keys, lua.Wanted{Since: 0, Limit: limit}, true)
	require.NoError(r.t, err)
	return b
}

// begin begins twice: the second one is a copy. Whoever has the same token all the same begins nothing.
func (r *runs) begin(token, since, limit int64) lua.Begun {
	r.t.Helper()
	b, err := r.conn.Begin(r.t.Context(), r.keys, token, lua.Wanted{Since: since, Limit: limit}, 2*minute, false)
	require.NoError(r.t, err)
	again, err := r.conn.Begin(r.t.Context(), r.keys, token, lua.Wanted{Since: since, Limit: limit}, 2*minute, true)
	require.NoError(r.t, err)
	require.GreaterOrEqual(r.t, again.Now, b.Now)
	require.Equal(r.t, b.Attempt > 0, b.Now > 1e15)
	b.Now, again.Now = 0, 0
	if b.Attempt > 0 {
		twin, err := r.conn.Begin(r.t.Context(), r.keys, token, lua.Wanted{Since: since, Limit: limit}, 2*minute, false)
		require.NoError(r.t, err)
		require.Equal(r.t, lua.Begun{Stale: true, Last: token}, twin)
	}
	if b.Wait == 0 {
		require.Equal(r.t, b, again, "a copy")
	}
	return b
}

// finish finishes twice: the second one is a copy. It returns the number of the outcome, 1 for a failure, 0 when the run is
// stale, and -1 when nothing is known of it.
func (r *runs) finish(token int64, o *lua.Outcome, pause int64) int64 {
	r.t.Helper()
	n, end, err := r.conn.Finish(r.t.Context(), r.keys, token, o, 0, pause, minute)
	require.NoError(r.t, err)
	number, again, err := r.conn.Finish(r.t.Context(), r.keys, token, nil, 0, 0, 3*minute)
	require.NoError(r.t, err)
	require.Equal(r.t, end, again, "a copy gets the reply of the first, whatever it says")
	require.Equal(r.t, n, number)
	return map[lua.Ended]int64{lua.EndRecorded: max(n, 1), lua.EndForgotten: -1}[end]
}

// What is done is done: once, by the run that has begun last.
// Rule 45.
func TestRunOnce(t *testing.T) {
	eachRuns(t, lua.RunOnce, func(t *testing.T, r *runs) {
		require.Equal(t, lua.Begun{}, r.look(0))
		require.EqualValues(t, -1, r.finish(5, &lua.Outcome{Value: "x"}, 0), "nothing is known of such a run")
		require.Equal(t, lua.Begun{}, r.look(0))

		require.Equal(t, lua.Begun{Attempt: 1}, r.begin(5, 0, 0))
		r.kept(2 * minute)
		require.Equal(t, lua.Begun{}, r.look(1), "it may still end")
		require.Equal(t, lua.Begun{Attempt: 2}, r.begin(7, 0, 2), "the first one died")
		require.Equal(t, lua.Begun{Stale: true, Last: 7}, r.begin(6, 0, 0))
		require.Zero(t, r.finish(5, &lua.Outcome{Value: "stale"}, 0))
		require.Zero(t, r.finish(6, nil, 0))
		require.Equal(t, lua.Begun{Exhausted: 2}, r.begin(8, 0, 2))

		number := r.finish(7, &lua.Outcome{Value: "result\x00"}, 0)
		require.Greater(t, number, int64(1e15), "the server's clock")
		r.kept(minute)
		require.Equal(t, lua.Begun{Outcome: &lua.Outcome{Value: "result\x00"}}, r.look(1))
		brief, err := r.conn.Look(t.Context(), r.keys, lua.Wanted{Since: 0, Limit: 0}, false)
		require.NoError(t, err)
		require.Equal(t, lua.Begun{Outcome: &lua.Outcome{}}, brief)
		for _, token := range []int64{1, 7, 9} {
			require.Equal(t, lua.Begun{Outcome: &lua.Outcome{Number: number, Value: "result\x00"}}, r.begin(token, 0, 1))
		}
		require.Zero(t, r.finish(9, nil, 0))
		require.Equal(t, "7", r.field("token"))
	})
}

// Whoever failed is followed by the next attempt, after a pause, as often as is said.
// Rule 45.
func TestRunFails(t *testing.T) {
	eachRuns(t, lua.RunOnce, func(t *testing.T, r *runs) {
		require.Equal(t, lua.Begun{Attempt: 1}, r.begin(5, 0, 2))
		require.EqualValues(t, 1, r.finish(5, nil, 40_000))
		r.kept(minute)
		require.Equal(t, lua.Begun{Stale: true, Last: 5}, r.begin(5, 0, 2), "a late copy")
		b := r.begin(6, 0, 2)
		require.Greater(t, b.Wait, int64(30_000))
		require.LessOrEqual(t, b.Wait, int64(40_000))
		require.NoError(t, r.do("HSET", r.record(), "until", "9007199254740990").Error(), "the clock was set back since")
		require.EqualValues(t, 40_000, r.begin(6, 0, 2).Wait)
		require.Less(t, r.field("until"), "9007199254740990", "the pause has an end")
		require.NoError(t, r.do("HSET", r.record(), "until", "1").Error())
		require.Equal(t, lua.Begun{}, r.look(2))
		require.Equal(t, lua.Begun{Exhausted: 1}, r.look(1))
		require.Equal(t, lua.Begun{Attempt: 2}, r.begin(6, 0, 2))
		require.EqualValues(t, 1, r.finish(6, nil, 0))
		require.Equal(t, lua.Begun{Exhausted: 2}, r.begin(7, 0, 2))
		require.Equal(t, lua.Begun{Attempt: 3}, r.begin(7, 0, 0), "who says nothing of a limit goes on")
	})
}

// Who waits gets what ended after it came, and nothing else.
// Rule 46.
func TestRunShared(t *testing.T) {
	eachRuns(t, lua.RunShared, func(t *testing.T, r *runs) {
		enter := func() int64 {
			n, err := r.conn.Enter(t.Context(), r.keys, minute)
			require.NoError(t, err)
			return n
		}
		early := enter()
		r.kept(minute)
		require.Greater(t, enter(), early, "a function that returned before is of no use")
		require.NoError(t, r.do("HSET", r.record(), "over", "3000000000000000").Error(), "the clock is set back")
		early = enter()
		require.Equal(t, lua.Begun{Attempt: 1}, r.begin(5, early, 0))
		require.Equal(t, early, enter(), "it runs")
		require.Equal(t, lua.Begun{Attempt: 2}, r.begin(6, early, 0))
		first := r.finish(6, &lua.Outcome{Value: "a"}, 0)
		require.Equal(t, early+1, first, "it grows")
		require.Equal(t, lua.Begun{Outcome: &lua.Outcome{Number: first, Value: "a"}}, r.begin(7, early, 0))

		late := enter()
		require.Equal(t, first, late)
		require.EqualValues(t, -1, r.finish(4, &lua.Outcome{Value: "unknown"}, 0), "the record begins later")
		require.Equal(t, lua.Begun{Attempt: 1}, r.begin(8, late, 0), "it came after the end")
		require.Error(t, r.do("HGET", r.record(), "value").Error(), "which is forgotten")
		require.Equal(t, first, r.finish(6, &lua.Outcome{Value: "a"}, 0), "a late copy: it had that outcome, also when another run has begun since")
		require.EqualValues(t, -1, r.finish(5, &lua.Outcome{Value: "stale"}, 0), "it may have had one before that")
		second := r.finish(8, &lua.Outcome{Failed: true, Value: "why"}, 0)
		for _, since := range []int64{early, late} {
			require.Equal(t, lua.Begun{Outcome: &lua.Outcome{Number: second, Failed: true, Value: "why"}}, r.begin(9, since, 0))
		}
		r.kept(minute)
		require.EqualValues(t, -1, r.finish(6, &lua.Outcome{Value: "a"}, 0), "what it had is not known any more")
	})
}

// An outcome has the number of the moment when its function returned: what begins to wait after that waits for another one.
// Rule 46.
func TestSharedWhenTheFunctionReturned(t *testing.T) {
	eachRuns(t, lua.RunShared, func(t *testing.T, r *runs) {
		enter := func() int64 {
			n, err := r.conn.Enter(t.Context(), r.keys, minute)
			require.NoError(t, err)
			return n
		}
		early := enter()
		require.Equal(t, lua.Begun{Attempt: 1}, r.begin(5, early, 0))
		during := enter()
		returned, err := r.conn.Time(t.Context(), nil)
		require.NoError(t, err)
		late := enter()
		require.GreaterOrEqual(t, late, returned)
		number, end, err := r.conn.Finish(t.Context(), r.keys, 5, &lua.Outcome{Value: "a"}, returned, 0, minute)
		require.NoError(t, err)
		require.Equal(t, lua.EndRecorded, end)
		require.Equal(t, returned, number)
		for _, since := range []int64{early, during} {
			require.NotNil(t, r.begin(6, since, 0).Outcome)
		}
		require.Equal(t, lua.Begun{Attempt: 1}, r.begin(6, late, 0))
		number, _, err = r.conn.Finish(t.Context(), r.keys, 6, &lua.Outcome{Value: "b"}, returned+1e12, 0, minute)
		require.NoError(t, err)
		require.Less(t, number, returned+1e10, "a clock that is ahead is not believed")
	})
}

// Redis remembers the last edition that was done. With it all before it are done.
// Rule 45.
func TestEditions(t *testing.T) {
	eachRuns(t, lua.RunOnce, func(t *testing.T, r *runs) {
		done := func(edition int64) bool {
			b, err := r.conn.Look(t.Context(), r.keys, lua.Wanted{Since: edition - 1, Limit: 0}, true)
			require.NoError(t, err)
			return b.Outcome != nil
		}
		for n, edition := range []int64{3, 4, 42} {
			token := int64(10 * (n + 1))
			require.False(t, done(edition))
			require.Equal(t, lua.Begun{Attempt: 1}, r.begin(token, edition-1, 0))
			require.False(t, done(edition-1), "it runs")
			require.EqualValues(t, 1, r.finish(token, nil, 0))
			require.Equal(t, lua.Begun{Attempt: 2}, r.begin(token+1, edition-1, 0), "it has failed")
			require.Equal(t, edition, r.finish(token+1, &lua.Outcome{Number: edition}, 0))
			require.True(t, done(edition))
			require.True(t, done(edition-1))
			require.False(t, done(edition+1))
			require.NotNil(t, r.begin(token+2, edition-1, 0).Outcome)
		}
	})
}

// An edition that was not tried yet has no attempts, and no pause, whatever became of the one before.
// Rule 45.
func TestAttemptsOfAnEdition(t *testing.T) {
	eachRuns(t, lua.RunOnce, func(t *testing.T, r *runs) {
		begin := func(token, edition int64) lua.Begun {
			b, err := r.conn.Begin(t.Context(), r.keys, token, lua.Wanted{Since: edition - 1, Edition: edition, Limit: 2}, minute, false)
			require.NoError(t, err)
			b.Now = 0
			return b
		}
		look := func(edition int64) lua.Begun {
			b, err := r.conn.Look(t.Context(), r.keys, lua.Wanted{Since: edition - 1, Edition: edition, Limit: 2}, true)
			require.NoError(t, err)
			return b
		}
		require.Equal(t, lua.Begun{Attempt: 1}, begin(5, 7))
		require.Equal(t, lua.Begun{Attempt: 2}, begin(6, 7), "the first one died")
		require.EqualValues(t, 1, r.finish(6, nil, 40_000))
		require.Equal(t, lua.Begun{Exhausted: 2}, begin(7, 7))
		require.Equal(t, lua.Begun{Exhausted: 2}, look(7))
		require.Equal(t, lua.Begun{}, look(8))
		require.Equal(t, lua.Begun{Attempt: 1}, begin(8, 8))
		require.EqualValues(t, 1, r.finish(8, nil, 40_000))
		require.Greater(t, begin(9, 8).Wait, int64(30_000))
		require.Equal(t, lua.Begun{Attempt: 1}, begin(9, 9))
		require.EqualValues(t, 9, r.finish(9, &lua.Outcome{Number: 9}, 0))
		require.NotNil(t, look(8).Outcome)
	})
}

// What did not begin is no attempt, also when that is heard before the begin.
// Rule 45.
func TestRunThatDidNotBegin(t *testing.T) {
	eachRuns(t, lua.RunOnce, func(t *testing.T, r *runs) {
		back := func(token int64) {
			for range 2 {
				require.NoError(t, r.conn.Back(t.Context(), r.keys, token, "", minute))
			}
		}
		back(4)
		r.kept(minute)
		require.Equal(t, lua.Begun{Stale: true, Last: 4}, r.begin(4, 0, 1))
		require.Equal(t, lua.Begun{Attempt: 1}, r.begin(5, 0, 1))
		back(4) // which is over
		require.Equal(t, lua.Begun{Exhausted: 1}, r.begin(6, 0, 1))
		back(5)
		require.Equal(t, lua.Begun{Stale: true, Last: 5}, r.begin(5, 0, 1), "it comes later")
		require.Zero(t, r.finish(5, &lua.Outcome{Value: "x"}, 0))
		require.Equal(t, lua.Begun{Attempt: 1}, r.begin(6, 0, 2))
		require.EqualValues(t, 1, r.finish(6, nil, 0))
		require.Equal(t, lua.Begun{Attempt: 2}, r.begin(7, 0, 2))
		back(7)
		require.Equal(t, lua.Begun{Exhausted: 1}, r.look(1), "the first one has failed")
		require.Equal(t, lua.Begun{Attempt: 2}, r.begin(8, 0, 2))
		require.Positive(t, r.finish(8, &lua.Outcome{Value: "x"}, 0))
		back(8)
		require.NotNil(t, r.look(1).Outcome)
	})
}

// The record of a run that dies is not that of an outcome: who waited for the one before runs itself.
// Rule 46.
func TestRunSharedDies(t *testing.T) {
	eachRuns(t, lua.RunShared, func(t *testing.T, r *runs) {
		require.Equal(t, lua.Begun{Attempt: 1}, r.begin(5, 0, 0), "the record was forgotten meanwhile")
		over := r.finish(5, &lua.Outcome{Value: "a"}, 0)
		require.Equal(t, lua.Begun{Attempt: 1}, r.begin(6, over, 0))
		require.Equal(t, lua.Begun{Attempt: 2}, r.begin(7, over-1, 0), "the outcome it waited for was dropped")
	})
}

// Foreign data is left alone, and named.
func TestRunsBesideForeignData(t *testing.T) {
	for name, family := range map[string]lua.Family{"once": lua.RunOnce, "share": lua.RunShared, "every": lua.RunTicks} {
		for what, foreign := range map[string][]string{
			"list":   {"RPUSH", "", "x"},
			"fields": {"HSET", "", "some", "thing"},
			"number": {"HSET", "", "token", "many", "over", "1", "last", "1"},
			"phase":  {"HSET", "", "phase", "q", "over", "1"},
		} {
			if what == "phase" && family == lua.RunTicks {
				continue
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				eachRuns(t, family, func(t *testing.T, r *runs) {
					foreign[1] = r.record()
					require.NoError(t, r.do(foreign...).Error())
					dump, err := r.do("DUMP", r.record()).ToString()
					for i, call := range r.calls(t.Context()) {
						err := call()
						require.Equal(t, lua.WrongType, lua.Classify(err), "%d: %v", i, err)
						err = r.conn.Foreign(t.Context(), r.keys, err)
						require.ErrorContains(t, err, "latchkey_")
					}
					after, afterErr := r.do("DUMP", r.record()).ToString()
					if err == nil { // the embedded server has no DUMP
						require.NoError(t, afterErr)
						require.Equal(t, dump, after)
					}
				})
			})
		}
	}
}

// calls are those of the family that touch the record.
func (r *runs) calls(ctx context.Context) []func() error {
	if r.keys.Family() == lua.RunTicks {
		t := lua.Ticks{Period: 1000, Missed: lua.MissedOnce}
		return []func() error{
			func() error { _, err := r.conn.Due(ctx, r.keys, t, 1000, "a"); return err },
			func() error { _, err := r.conn.Tick(ctx, r.keys, t, 5, true); return err },
			func() error { _, _, err := r.conn.FinishTick(ctx, r.keys, t, 5, ""); return err },
			func() error { return r.conn.BackTick(ctx, r.keys, t, 5, "", true) },
		}
	}
	return []func() error{
		func() error { _, err := r.conn.Look(ctx, r.keys, lua.Wanted{Since: 0, Limit: 0}, true); return err },
		func() error { _, err := r.conn.Enter(ctx, r.keys, minute); return err },
		func() error {
			_, err := r.conn.Begin(ctx, r.keys, 5, lua.Wanted{Since: 0, Limit: 0}, minute, true)
			return err
		},
		func() error {
			_, _, err := r.conn.Finish(ctx, r.keys, 5, &lua.Outcome{Value: "x"}, 0, 0, minute)
			return err
		},
		func() error { return r.conn.Back(ctx, r.keys, 5, "", minute) },
	}
}

// A server whose memory is full begins no run. The end of one is recorded.
// Rule 45.
func TestRunsWhenMemoryIsFull(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	for _, family := range []lua.Family{lua.RunOnce, lua.RunTicks} {
		k, err := lua.NewKeys(family, "full", false)
		require.NoError(t, err)
		r := &runs{t, lua.Conn{Client: s.Client(t)}, k}
		ticks := lua.Ticks{Period: 3_600_000, Missed: lua.MissedOnce}
		if family == lua.RunTicks {
			r.tick(ticks, 1)
			require.NoError(t, r.do("HSET", r.record(), "last", "1").Error())
			require.Positive(t, r.tick(ticks, 5).At)
		} else {
			r.begin(5, 0, 0)
		}
		require.NoError(t, r.do("CONFIG", "SET", "maxmemory", "1").Error())
		if family == lua.RunTicks {
			_, end, err := r.conn.FinishTick(t.Context(), k, ticks, 5, "")
			require.NoError(t, err)
			require.Equal(t, lua.EndRecorded, end)
		} else {
			require.Positive(t, r.finish(5, &lua.Outcome{Value: strings.Repeat("x", 1000)}, 0))
			require.NotNil(t, r.look(0).Outcome)
			other, err := lua.NewKeys(family, "other", false)
			require.NoError(t, err)
			_, err = r.conn.Begin(t.Context(), other, 5, lua.Wanted{Since: 0, Limit: 0}, minute, true)
			require.ErrorContains(t, err, "OOM")
		}
		require.NoError(t, r.do("CONFIG", "SET", "maxmemory", "0").Error())
	}
}

// In a slot that moves nothing is taken for absent that is on the other side, and what is nowhere can be
// made.
// Rule 45.
func TestRunsInAMovingSlot(t *testing.T) {
	redistest.Together(t)
	c := redistest.NewCluster(t)
	for _, family := range []lua.Family{lua.RunOnce, lua.RunTicks} {
		conn, k := sharded(t, c, family, "one")
		r := &runs{t, conn, k}
		calls := r.calls(t.Context())
		locks, err := lua.NewKeys(lua.Locks, "one", true)
		require.NoError(t, err)
		_, err = conn.Acquire(t.Context(), locks, shared("a:1"), 0, lua.First)
		require.NoError(t, err)
		for _, call := range calls {
			require.NoError(t, call())
		}
		m := c.Move(t, "one")
		m.Key(t, k.All()[1]) // the lock is on this side, the record on the other
		for _, call := range calls {
			require.Equal(t, lua.Refused, lua.Classify(call()), "it waits")
		}
		m.Key(t, k.Name())
		for _, call := range calls {
			require.NoError(t, call())
		}
		for _, key := range m.Left(t) { // the counter of tokens
			m.Key(t, key)
		}
		m.Assign(t)
		for _, call := range calls {
			require.NoError(t, call())
		}
		require.NoError(t, conn.Client.Do(t.Context(), conn.Client.B().Del().Key(k.All()...).Build()).Error())
	}
}
