package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Rule 16.
func TestAbsurdLatches(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, server *redistest.Server) {
		k, err := lua.NewKeys(lua.Latch, "latch", false)
		require.NoError(t, err)
		s := &spoiled{t: t, conn: lua.Conn{Client: server.Client(t)}, keys: k}
		ctx, c, all := t.Context(), s.conn, k.All()
		s.stay = all[:2]
		s.places = []place{{"string", all[0], "", "%"}, {"string", all[2] + ":A:9", "", "%"}, {"string", all[2] + ":A:9", "", "1 %"}}
		for _, field := range []string{"generation", "first", "bad", "phase", "ttl", "until", "p:q", "x"} {
			s.places = append(s.places, place{"hash", all[1], field, "%"})
		}
		s.places = append(s.places, place{"hash", all[1], "bad", "%l "})
		s.make = func() {
			_, err := c.Arm(ctx, k, s.id(), 3, 0, false)
			s.must(err)
			_, err = c.Count(ctx, k, s.id(), 1, "p")
			s.must(err)
		}
		again := lua.Once{ID: "A:9"}
		s.uses = map[string]func() error{
			"set":    func() error { _, err := c.Arm(ctx, k, again, 5, 1000, false); return err },
			"rearm":  func() error { _, err := c.Arm(ctx, k, again, 5, 1000, true); return err },
			"count":  func() error { _, err := c.Count(ctx, k, again, 1, ""); return err },
			"all":    func() error { _, err := c.Count(ctx, k, again, 2, "q"); return err },
			"delete": func() error { _, err := c.DeleteLatch(ctx, k, again); return err },
			"state":  func() error { _, _, err := c.Latch(ctx, k, 10); return err },
		}
		s.skip = func(p place, value, _ string) bool { // what there may be
			return p.key == all[0] && len(value) > 15 && value[0] == '9' && len(value) < 20
		}
		s.works = func(used string) {
			if used == "" {
				r, _, err := c.Latch(ctx, k, 10)
				s.must(err)
				require.Equal(t, lua.Shut, r.Phase)
				require.EqualValues(t, 2, r.Number, "as before what could not be done")
			}
			_, err := c.DeleteLatch(ctx, k, s.id())
			s.must(err)
			done, err := c.Arm(ctx, k, s.id(), 1, 0, true)
			s.must(err)
			require.True(t, done)
			counted, err := c.Count(ctx, k, s.id(), 1, "p")
			s.must(err)
			require.True(t, counted.Done)
			r, _, err := c.Latch(ctx, k, 10)
			s.must(err)
			require.Equal(t, lua.Open, r.Phase)
		}
		s.run()
	})
}

// Rule 16.
func TestAbsurdBarriers(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, server *redistest.Server) {
		k, err := lua.NewKeys(lua.Barrier, "barrier", false)
		require.NoError(t, err)
		s := &spoiled{t: t, conn: lua.Conn{Client: server.Client(t)}, keys: k}
		ctx, c, all := t.Context(), s.conn, k.All()
		done := all[2]
		s.places = []place{
			{"score", all[1], "A", "%"}, {"member", all[1], "", "%"}, {"score", all[3], "A:100", "%"}, {"member", all[3], "", "%"},
			{"string", done + ":B:9", "", "%"}, {"string", done + ":B:9", "", "%:1"}, {"string", done + ":B:100", "", "%"}, {"string", done + ":A:1", "", "%"},
		}
		for _, field := range []string{"generation", "first", "bad", "phase", "parties", "waiting", "leader", "barrier", "lease", "c:A", "c:B", "x"} {
			s.places = append(s.places, place{"hash", all[0], field, "%"})
		}
		arrive := func(id string, member string) error {
			_, err := c.Arrive(ctx, k, lua.Once{ID: id}, 3, 60_000, false, member)
			return err
		}
		s.make = func() { s.must(arrive("A:1", "A:100")) }
		again := lua.Once{ID: "B:9"}
		settle := func(once lua.Once, fate lua.Fate) func() error {
			return func() error { _, err := c.Settle(ctx, k, once, fate, 0, 0); return err }
		}
		s.uses = map[string]func() error{
			"arrive": func() error { return arrive("B:9", "B:100") }, "same": func() error { return arrive("A:2", "A:100") },
			"repeat":  func() error { return arrive("A:1", "A:100") },
			"give up": settle(again, lua.Cancelled), "settle": settle(lua.Once{ID: "A:1"}, lua.Cancelled),
			"attend": func() error {
				_, err := c.Attend(ctx, k, lua.Attendance{Client: "A", Lease: 60_000, Generation: 1, Arrivals: 1, Member: "A:100"})
				return err
			},
			"join":  func() error { _, _, err := c.JoinBarrier(ctx, k, lua.Once{ID: "B:100"}, 60_000); return err },
			"leave": func() error { return c.LeaveBarrier(ctx, k, lua.Once{ID: "B:100"}, true) },
			"reset": func() error { return c.ResetBarrier(ctx, k, again) },
		}
		s.works = func(used string) {
			if used == "" {
				r, err := c.Attend(ctx, k, lua.Attendance{Client: "C"})
				s.must(err)
				require.Equal(t, lua.Waiting, r.Phase)
				require.EqualValues(t, 1, r.Number, "as before what could not be done")
			}
			s.must(c.ResetBarrier(ctx, k, s.id()))
			for n := range int64(3) {
				a, err := c.Arrive(ctx, k, s.id(), 3, 60_000, false, "")
				s.must(err)
				require.Equal(t, n, a.Index)
			}
		}
		s.run()
	})
}
