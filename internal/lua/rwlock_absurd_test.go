package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Absurd data in every place of a read-write lock, whether somebody reads or writes: see spoiled.
// Rule 16.
func TestAbsurdReadWriteLocks(t *testing.T) {
	redistest.Together(t)
	for half, hold := range map[string]lua.Claim{"reader": reads("A:1"), "writer": shared("A:1")} {
		t.Run(half, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, server *redistest.Server) { absurdReadWrite(t, server, hold) })
		})
	}
}

func absurdReadWrite(t *testing.T, server *redistest.Server, hold lua.Claim) {
	b := newRW(t, server)
	k := b.lock
	hear(t, server, k, "A", "B")
	s := &spoiled{t: t, conn: b.conn, keys: k}
	name, queue, token, state, pace := k.All()[0], k.All()[1], k.All()[2], k.All()[3], "latchkey_pace:orders:{42} x"
	s.places = []place{
		{"hash", state, "token", "%"}, {"hash", state, "token", "t%"}, {"hash", state, "token", "t1+%"}, {"hash", state, "token", "t1/%"},
		{"hash", state, "short", "%"}, {"hash", state, "short", "B:%"}, {"hash", state, "x", "%"}, {"hash", state, "writer", "%"},
		{"string", b.timeout("A:1"), "", "%"},
		{"hash", name, "mode", "%"}, {"hash", name, "A:1", "%"}, {"hash", name, "A:1:write", "%"}, {"hash", name, "x", "%"}, {"hash", name, "x:write", "%"},
		{"list", queue, "", "%"}, {"list", queue, "", "1:B:%:1000:0"}, {"list", queue, "", "1:B:7:%:0"}, {"list", queue, "", "1:B:7:1000:%"},
		{"list", queue, "", "1:%:7:1000:0"}, {"list", queue, "", "1:B:%:1000:0s"}, {"list", queue, "", "1:B:7:%:0s"},
		{"list", queue, "", "1:B:7:1000:%s"}, {"list", queue, "", "1:%:7:1000:0s"},
		{"string", token, "", "%"}, {"string", pace, "", "%"},
	}
	s.skip = func(p place, _, _ string) bool { // what is the same beside readers, as long as time is short
		return redistest.Longer(0, 1) == 0 && !hold.Shared && p.kind != "hash"
	}
	s.make = func() {
		b.claim(hold, lua.First)
		b.share("B:1", lua.First)
		b.read("B:4", lua.First)
	}
	s.uses = b.uses(t.Context())
	s.uses["roll"] = func() error { _, err := b.conn.Roll(t.Context(), b.lock, "B", "", 10); return err }
	s.stay = []string{b.timeout("A:1")} // put there, while nobody reads
	s.works = func(string) {
		for range 4 {
			for _, half := range []bool{true, false} {
				_, err := b.conn.Force(t.Context(), k, half, 0, lua.AnyHolder)
				s.must(err)
			}
		}
		require.Zero(t, must(t, message(t, s.do("EXISTS", name, queue))), "all who waited had it")
		require.Positive(t, b.acquire("D:1", 10_000, lua.First).Token)
		require.Zero(t, b.acquire("E:1", 10_000, lua.Try).Token)
		require.Zero(t, b.read("E:4", lua.Try).Token)
		require.True(t, b.release("D:1", ""))
		require.Positive(t, b.read("E:4", lua.Try).Token)
		require.True(t, b.release("E:4", ""))
	}
	s.run()
}

// An entry with a lease of no length, which Redis would refuse, holds up nobody.
func TestEntryWithoutALease(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("B")
		b.share("A:1", lua.First)
		for _, entry := range []string{"1:B:7:0:0s", "1:B:8:0:0", "1:B:9:00:32"} {
			require.NoError(t, b.do("RPUSH", b.lock.All()[1], entry).Error())
		}
		require.True(t, b.read("B:1", lua.First).Queued)
		require.True(t, b.release("A:1", ""))
		b.granted("B", 1)
		require.Equal(t, map[string]string{"mode": "read", "B:1": "1"}, b.fields())
	})
}

// Many readers, and more fields than one command deletes.
func TestManyReadersLeave(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		b.open("W")
		for n := range 3 {
			command := []string{"HSET", b.lock.Name(), "mode", "read"}
			for i := range 3000 {
				command = append(command, lua.Owner("A", uint64(3000*n+i)), "1")
			}
			require.NoError(t, b.do(command...).Error())
		}
		require.NoError(t, b.do("PEXPIRE", b.lock.Name(), "60000").Error())
		require.Positive(t, b.share("W:1", lua.First).Token, "none of them has a lease")
		require.Equal(t, map[string]string{"mode": "write", "W:1:write": "1"}, b.fields())
	})
}

// After the server's clock was set back nobody's lease is longer than it was at the beginning, once somebody
// has asked.
// Rule 24.
func TestReadWriteLeaseIsCut(t *testing.T) {
	redistest.Together(t)
	try := func(b *bench) lua.Acquired { return b.acquire("C:1", 60_000, lua.Try) }
	t.Run("of a writer", func(t *testing.T) {
		s := redistest.NewJumping(t)
		b := newRW(t, s)
		b.acquire("A:1", 10_000, lua.First)
		s.Jump(t, -time.Hour)
		require.LessOrEqual(t, try(b).Ends, int64(10_000))
		require.InDelta(t, 10_000, b.number("PTTL", b.lock.Name()), 1000)
		require.True(t, b.renew("A:1", 10_000))
	})
	t.Run("of readers", func(t *testing.T) {
		s := redistest.NewJumping(t)
		b := newRW(t, s)
		b.readFor("A:1", 10_000)
		b.readFor("B:1", 20_000)
		s.Jump(t, -time.Hour)
		require.LessOrEqual(t, try(b).Ends, int64(20_000))
		require.InDelta(t, 10_000, b.number("PTTL", b.timeout("A:1")), 1000)
		require.InDelta(t, 20_000, b.number("PTTL", b.timeout("B:1")), 1000)
		require.True(t, b.renew("A:1", 10_000))
		s.Jump(t, 21*time.Second)
		require.Positive(t, try(b).Token)
	})
	t.Run("of readers that were granted it by message", func(t *testing.T) {
		s := redistest.NewJumping(t)
		b := newRW(t, s)
		b.open("B")
		b.acquire("A:1", 10_000, lua.First)
		require.True(t, b.readFor("B:1", 20_000).Queued)
		b.release("A:1", "")
		b.granted("B", 1)
		s.Jump(t, -time.Hour)
		require.LessOrEqual(t, try(b).Ends, int64(20_000))
	})
	t.Run("but not of one that shall stay taken", func(t *testing.T) {
		for _, claim := range []lua.Claim{{Owner: "A:1", Lease: 10_000, Longest: 10}, readsFor("A:1", 10_000)} {
			s := redistest.NewJumping(t)
			b := newRW(t, s)
			b.claim(claim, lua.First)
			_, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: "A:1", Rest: 50_000}, 0)
			require.NoError(t, err)
			require.InDelta(t, 50_000, try(b).Ends, 1000)
			s.Jump(t, -time.Hour)
			require.InDelta(t, 50_000, try(b).Ends, 1000)
		}
	})
	t.Run("nor of Redisson's readers", func(t *testing.T) {
		s := redistest.NewProcess(t)
		b := newRW(t, s)
		b.readFor("A:1", 10_000)
		theirs := beside(t, b)
		require.True(t, theirs.reads())
		require.InDelta(t, 10_000, try(b).Ends, 1000)
		ttl := b.number("PTTL", b.lock.Name()+":"+theirs.id()+":rwlock_timeout:1")
		require.InDelta(t, 30_000, ttl, 1000, "their watchdog renews it every ten seconds")
	})
	t.Run("nor of Redisson's writer", func(t *testing.T) {
		s := redistest.NewProcess(t)
		b := newRW(t, s)
		b.acquire("A:1", 10_000, lua.First)
		require.True(t, b.release("A:1", ""))
		theirs := beside(t, b)
		require.True(t, theirs.writes())
		require.InDelta(t, 30_000, try(b).Ends, 1000)
		require.InDelta(t, 30_000, b.number("PTTL", b.lock.Name()), 1000)
	})
}
