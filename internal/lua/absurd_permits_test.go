package lua_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Rule 16.
func TestAbsurdSemaphores(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, server *redistest.Server) {
		for _, family := range []lua.Family{lua.Leased, lua.Plain} {
			server.Run(t, map[lua.Family]string{lua.Leased: "leased", lua.Plain: "plain"}[family], func(t *testing.T) { absurdSemaphore(t, server, family) })
		}
	})
}

func absurdSemaphore(t *testing.T, server *redistest.Server, family lua.Family) {
	b := newSem(t, server, family)
	k := b.lock
	hear(t, server, k, "A", "B")
	s := &spoiled{t: t, conn: b.conn, keys: k}
	all, ctx := k.All(), t.Context()
	name, queue, token, done := all[0], all[1], all[2], all[4]
	s.places = []place{
		{"string", name, "", "%"}, {"string", token, "", "%"}, {"string", done + ":stated", "", "%"}, {"string", done + ":A:1", "", "%"},
		{"string", done + ":Z:9", "", "%"},
		{"list", queue, "", "%"}, {"list", queue, "", "1:B:%:1000:1"}, {"list", queue, "", "1:B:7:%:1"}, {"list", queue, "", "1:B:7:1000:%"},
	}
	s.stay = []string{name}
	if family == lua.Leased {
		s.stay = append(s.stay, all[5])
		permit := ".........A\x00\x00\x00\x01\x00\x00"
		s.places = append(s.places,
			place{"score", all[5], permit, "%"}, place{"member", all[5], "", "%"}, place{"hash", all[6], permit[:14], "%"},
			place{"hash", all[6], permit[:14], "%:1:0:60000:A:1"}, place{"hash", all[6], permit[:14], "2:%:0:60000:A:1"}, place{"hash", all[6], permit[:14], "2:1:0:60000:A:%"}, place{"hash", all[6], permit[:14], "2:1:0:%:A:1"},
		)
	}
	s.make = func() {
		b.set(3)
		require.Positive(t, b.take("A:1", "2", lua.First).Token)
		require.True(t, b.take("B:1", "2", lua.First).Queued)
	}
	trade := func(r lua.Request) func() error {
		return func() error {
			replies, err := b.conn.Trade(ctx, k, 0, 1000, "", r)
			if err == nil && r[0] == "take" {
				_, err = lua.ParseTaken(replies[0])
			} else if err == nil {
				_, err = lua.ParseGiven(replies[0])
			}
			return err
		}
	}
	capacity := func(change lua.Change, n int64) func() error {
		return func() error {
			_, _, _, err := b.conn.Capacity(ctx, k, "Z:9", 0, change, n, 1000, 1)
			return err
		}
	}
	s.uses = map[string]func() error{
		"try": trade(lua.Take(request("C:1", "1"), lua.Try)), "queue": trade(lua.Take(request("C:1", "1"), lua.First)),
		"pass":  trade(lua.Take(request("C:1", "1p"), lua.First)),
		"again": trade(lua.Take(request("A:1", "2"), lua.Again)), "ask": trade(lua.Take(request("B:1", "2"), lua.Again)),
		"give": trade(lua.Give(lua.Ending{Owner: "A:1"})), "some": trade(lua.Give(lua.Ending{Owner: "A:1", Rest: 1})),
		"set": capacity(lua.Set, 3), "initialize": capacity(lua.Initialize, 3), "declare": capacity(lua.Declare, 3),
		"census":  func() error { _, err := b.conn.Census(ctx, k, 10); return err },
		"roll":    func() error { _, err := b.conn.Roll(ctx, k, "B", "", 10); return err },
		"destroy": func() error { _, err := b.conn.Destroy(ctx, k, "Z:9", 0); return err },
		"leave": func() error {
			_, err := b.conn.Leave(ctx, k, []lua.Departure{{Owner: "A:1", Entry: request("A:1", "2").Entry()}}, 0)
			return err
		},
	}
	if family == lua.Leased {
		s.uses["renew"] = func() error {
			_, _, err := b.conn.Renew(ctx, []lua.Renewal{{Keys: k, Owner: "A:1", Lease: 60000}})
			return err
		}
	} else {
		s.uses["put"] = trade(lua.Put("C:3", 1))
		s.uses["drain"] = capacity(lua.Drain, 0)
		delete(s.uses, "set") // of plain permits that is the number of the free
		delete(s.uses, "declare")
	}
	s.skip = func(p place, value, use string) bool { // a number that there can be
		return p.key == name && (value == "-5" || value == "0") && slices.Contains([]string{"set", "initialize", "declare", "drain"}, use) ||
			p.kind == "member" && len(value) == 16 // as a permit of Redisson's
	}
	s.works = func(used string) {
		if used == "destroy" {
			return
		}
		for range 2 {
			for _, owner := range []string{"A:1", "B:1", "C:1", "B:7", "B:0", "B:9007199254740992", "B:9223372036854775807", "B:9223372036854775808"} {
				_ = trade(lua.Give(lua.Ending{Owner: owner, Entry: request(owner, "2").Entry()}))() // which it may not hold
			}
			s.must(s.do("DEL", queue).Error()) // of those who wait in vain
		}
		want := map[string]int64{"put": 4, "drain": 2}[used]
		if want == 0 {
			want = 3
		}
		if family == lua.Plain && used == "" {
			want = 3
		}
		if family == lua.Leased {
			// What was there of nobody we know has come to its end.
			for _, permit := range b.everyPermit() {
				s.must(s.do("ZADD", all[5], "XX", "1", permit).Error())
			}
		}
		_, total, free, err := b.conn.Capacity(ctx, k, s.id().ID, 0, lua.Add, 0, 1000, 0)
		s.must(err)
		require.Equal(t, want, free, "free")
		require.Equal(t, want, total, "total")
		require.Positive(t, b.take("D:1", fmt.Sprint(want), lua.First).Token)
		require.Zero(t, b.take("E:1", "1", lua.Try).Token)
		require.True(t, b.give("D:1", 0))
	}
	s.run()
}

// everyPermit is every member of the ordered set.
func (b *sem) everyPermit() []string {
	all, err := b.do("ZRANGE", b.lock.All()[5], "0", "-1").AsStrSlice()
	require.NoError(b.t, err)
	return all
}

// A holder of more permits than one command can name is nobody's: nothing is left half done, and no other
// renewal fails.
func TestHolderOfTooManyPermits(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		k, err := lua.NewKeys(lua.Leased, "s", false)
		require.NoError(t, err)
		_, _, _, err = b.conn.Capacity(t.Context(), k, "Z:1", 0, lua.Set, 2, 100, 0)
		require.NoError(t, err)
		var batch []lua.Renewal
		for _, owner := range []string{"A:1", "A:2"} {
			_, err = b.conn.Trade(t.Context(), k, 0, 100, "", lua.Take(lua.Claim{Owner: owner, Lease: 60_000, Demand: lua.Demand{Permits: 1}}, lua.Try))
			require.NoError(t, err)
			batch = append(batch, lua.Renewal{Keys: k, Owner: owner, Lease: 60_000})
		}
		holders, err := b.do("HGETALL", k.All()[6]).AsStrMap()
		require.NoError(t, err)
		for field, value := range holders {
			if strings.HasSuffix(value, "A:1") {
				require.NoError(t, b.do("HSET", k.All()[6], field, "9999"+value[1:]).Error())
			}
		}
		renewed, _, err := b.conn.Renew(t.Context(), batch)
		require.NoError(t, err)
		require.Equal(t, []bool{false, true}, renewed)
		replies, err := b.conn.Trade(t.Context(), k, 0, 100, "", lua.Give(lua.Ending{Owner: "A:1"}))
		require.NoError(t, err)
		held, err := lua.ParseGiven(replies[0])
		require.NoError(t, err)
		require.False(t, held)
	})
}
