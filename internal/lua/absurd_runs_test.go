package lua_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Absurd data in every field of what is run once or shared, while it runs, when it is done, and when it has
// failed: see spoiled.
func TestAbsurdRuns(t *testing.T) {
	for name, family := range map[string]lua.Family{"once": lua.RunOnce, "share": lua.RunShared} {
		for phase, end := range map[string]func(r *runs){
			"runs":   func(*runs) {},
			"done":   func(r *runs) { r.finish(5, &lua.Outcome{Value: "done"}, 0) },
			"failed": func(r *runs) { r.finish(5, nil, 40_000) },
		} {
			t.Run(name+"/"+phase, func(t *testing.T) {
				eachRuns(t, family, func(_ *testing.T, r *runs) { absurdRuns(r, end) })
			})
		}
	}
}

// newest is a token that is greater than all that the clock makes.
const newest = int64(4_000_000_000_000_000)

func absurdRuns(r *runs, end func(r *runs)) {
	ctx := r.t.Context()
	s := &spoiled{t: r.t, conn: r.conn, keys: r.keys}
	for _, field := range []string{"token", "attempt", "phase", "over", "kind", "value", "until", "pause", "won", "first", "asker", "gone", "x"} {
		s.places = append(s.places, place{"hash", r.record(), field, "%"})
	}
	s.make = func() { r.begin(5, 0, 0); end(r) }
	finish := func(token int64, o *lua.Outcome) func() error {
		return func() error { _, _, err := r.conn.Finish(ctx, r.keys, token, o, 0, 1000, minute); return err }
	}
	begin := func(token int64) func() error {
		return func() error {
			_, err := r.conn.Begin(ctx, r.keys, token, lua.Wanted{Since: 0, Limit: 3}, minute, true)
			return err
		}
	}
	s.uses = map[string]func() error{
		"enter": func() error { _, err := r.conn.Enter(ctx, r.keys, minute); return err },
		"look":  func() error { _, err := r.conn.Look(ctx, r.keys, lua.Wanted{Since: 0, Limit: 3}, true); return err },
		"begin": begin(6), "again": begin(5), "late": begin(4),
		"finish": finish(5, &lua.Outcome{Value: "x"}), "fail": finish(5, nil), "stale": finish(4, nil),
		"acquire": func() error {
			_, _, _, _, err := r.conn.AcquireOnce(ctx, r.keys, lua.Claim{Owner: "A:1", Lease: 10_000}, 0, lua.First, lua.Beginning{Wanted: lua.Wanted{Limit: 3}, Kept: minute})
			return err
		},
		"back": func() error { return r.conn.Back(ctx, r.keys, 5, "", minute) },
	}
	s.works = func(string) {
		s.must(r.do("HDEL", r.record(), "until").Error())
		b, err := r.conn.Begin(ctx, r.keys, newest, lua.Wanted{Since: 9_007_199_254_740_990, Limit: 0}, minute, true)
		s.must(err)
		require.Positive(r.t, b.Attempt)
		require.Positive(r.t, r.finish(newest, &lua.Outcome{Value: "works"}, 0))
		require.Equal(r.t, &lua.Outcome{Value: "works"}, r.look(0).Outcome)
	}
	s.run()
}

// What is longer than a result can be is foreign, and is not sent to all that ask.
func TestRunIsBounded(t *testing.T) {
	for _, family := range []lua.Family{lua.RunOnce, lua.RunShared} {
		eachRuns(t, family, func(t *testing.T, r *runs) {
			r.begin(5, 0, 0)
			longest := strings.Repeat("x", 64<<10)
			require.Positive(t, r.finish(5, &lua.Outcome{Value: longest}, 0))
			require.Equal(t, longest, r.look(0).Outcome.Value)
			require.NoError(t, r.do("HSET", r.record(), "value", longest+"x").Error())
			_, err := r.conn.Look(t.Context(), r.keys, lua.Wanted{Since: 0, Limit: 3}, true)
			require.Equal(t, lua.WrongType, lua.Classify(err), err)
		})
	}
}

// Absurd data in every field of a job, while it runs and while it does not.
func TestAbsurdTicks(t *testing.T) {
	for _, running := range []bool{false, true} {
		t.Run(fmt.Sprintf("runs %t", running), func(t *testing.T) {
			eachRuns(t, lua.RunTicks, func(_ *testing.T, r *runs) { absurdTicks(r, running) })
		})
	}
}

func absurdTicks(r *runs, running bool) {
	ctx, ticks := r.t.Context(), lua.Ticks{Period: day, Missed: lua.MissedOnce, Limit: 3}
	s := &spoiled{t: r.t, conn: r.conn, keys: r.keys}
	for _, field := range []string{"last", "token", "tick", "attempt", "told", "by", "gave", "row", "held", "holds", "won", "first", "back", "asker", "gone", "x"} {
		s.places = append(s.places, place{"hash", r.record(), field, "%"})
	}
	s.make = func() {
		r.due(ticks, "a")
		r.back(ticks, 1)
		require.True(r.t, r.due(ticks, "a").Take)
		if running {
			require.Positive(r.t, r.tick(ticks, 5).At)
		}
	}
	begin := func(token int64, missed lua.Missed) func() error {
		return func() error {
			t := ticks
			t.Missed, t.Grace = missed, 1000
			_, err := r.conn.Tick(ctx, r.keys, t, token, true)
			return err
		}
	}
	finish := func(token int64) func() error {
		return func() error { _, _, err := r.conn.FinishTick(ctx, r.keys, ticks, token, ""); return err }
	}
	s.uses = map[string]func() error{
		"due":  func() error { _, err := r.conn.Due(ctx, r.keys, ticks, 10_000, "b"); return err },
		"once": begin(6, lua.MissedOnce), "all": begin(6, lua.MissedAll), "skip": begin(6, lua.MissedSkip),
		"again": begin(5, lua.MissedOnce), "late": begin(4, lua.MissedOnce), "finish": finish(5), "stale": finish(4),
		"acquire": func() error {
			_, _, _, err := r.conn.AcquireTick(ctx, r.keys, lua.Claim{Owner: "A:1", Lease: 10_000}, 0, lua.First, ticks, 0)
			return err
		},
		"back": func() error { return r.conn.BackTick(ctx, r.keys, ticks, 5, "", true) },
	}
	s.works = func(string) {
		s.must(r.do("HDEL", r.record(), "held").Error())
		r.free()                         // of what acquired it
		for token := newest; ; token++ { // of what has begun, all runs may have died
			require.Less(r.t, token, newest+4)
			tick := r.tick(ticks, token)
			if tick.At == 0 {
				break
			}
			require.True(r.t, r.over(ticks, token))
		}
		r.back(ticks, 1)
		require.True(r.t, r.due(ticks, "a").Take)
		require.Positive(r.t, r.tick(ticks, newest+9).At)
		require.True(r.t, r.over(ticks, newest+9))
		require.Positive(r.t, r.due(ticks, "a").Next)
	}
	s.run()
}

// Absurd data in the companion of a fenced key: it is named, and nothing is written.
func TestAbsurdFences(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, server *redistest.Server) {
		k, err := lua.NewKeys(lua.Fence, "stock", false)
		require.NoError(t, err)
		s := &spoiled{t: t, conn: lua.Conn{Client: server.Client(t)}, keys: k}
		ctx, key, companion := t.Context(), k.All()[0], k.All()[1]
		s.places = []place{
			{"string", companion, "", "%"}, {"string", companion, "", "% 0000000000000001"}, {"string", companion, "", "0000000000000005 %"},
			{"string", companion, "", "0000000000000005 0000000000000001%"},
		}
		s.stay = []string{key}
		set := func(token int64, number uint64) error {
			return s.conn.FenceSet(ctx, k, token, number, fmt.Sprint("set ", token, number))
		}
		eval := func(token int64) error {
			_, err := s.conn.FenceEval(ctx, []*lua.Keys{k}, token, "return redis.call('SET', KEYS[1], ARGV[1])", []string{fmt.Sprint("eval ", token)})
			return err
		}
		s.make = func() { s.must(set(5, 1)) }
		sees := func(written string, err error) error {
			value, _ := text(s.do("GET", key))
			switch {
			case err == nil:
				require.Equal(t, written, value, "it says that it has written")
			case errors.Is(err, lua.ErrStale): // of a token that there can be
				require.Equal(t, "set 5 1", value)
				return nil
			}
			return err
		}
		s.uses = map[string]func() error{
			"set": func() error { return sees("set 6 1", set(6, 1)) }, "again": func() error { return sees("set 5 2", set(5, 2)) },
			"eval": func() error { return sees("eval 6", eval(6)) }, "eval again": func() error { return sees("eval 5", eval(5)) },
		}
		s.works = func(string) {
			s.must(set(7, 3))
			require.ErrorIs(t, set(4, 9), lua.ErrStale)
			s.must(eval(8))
			value, _ := text(s.do("GET", key))
			require.Equal(t, "eval 8", value)
		}
		s.run()

		for _, foreign := range [][]string{{"RPUSH", companion, "x"}, {"HSET", companion, "x", "1"}, {"SADD", companion, "x"}, {"ZADD", companion, "1", "x"}} {
			s.must(s.do("FLUSHALL").Error())
			s.must(s.do("SET", key, "mine").Error())
			s.must(s.do(foreign...).Error())
			require.ErrorIs(t, set(6, 1), lua.ErrForeignFence, foreign)
			require.ErrorIs(t, eval(6), lua.ErrForeignFence, foreign)
			value, _ := text(s.do("GET", key))
			require.Equal(t, "mine", value)
		}
	})
}
