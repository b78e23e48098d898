package lua_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// uses are the calls of a read-write lock: those of a stranger, and those of A, which holds it, and of B,
// which waits.
func (b *bench) uses(ctx context.Context) map[string]func() error {
	acquire := func(claim lua.Claim, mode lua.Mode) func() error {
		return func() error { _, err := b.conn.Acquire(ctx, b.lock, claim, 0, mode); return err }
	}
	release := func(rest int64) func() error {
		return func() error {
			_, err := b.conn.Release(ctx, b.lock, lua.Ending{Owner: "A:1", Rest: rest}, 0)
			return err
		}
	}
	force := func(shared bool) func() error {
		return func() error { _, err := b.conn.Force(ctx, b.lock, shared, 0, lua.AnyHolder); return err }
	}
	return map[string]func() error{
		"try to read": acquire(reads("C:4"), lua.Try), "try to write": acquire(shared("C:1"), lua.Try),
		"read": acquire(reads("C:4"), lua.First), "write": acquire(shared("C:1"), lua.First),
		"again as reader": acquire(reads("A:1"), lua.Again), "again as writer": acquire(shared("A:1"), lua.Again),
		"ask to read": acquire(reads("B:1"), lua.Again), "ask to write": acquire(shared("B:1"), lua.Again),
		"release": release(0), "rest": release(100),
		"leave": func() error {
			_, err := b.conn.Leave(ctx, b.lock, []lua.Departure{{Owner: "A:1", Entry: shared("A:1").Entry()}}, 0)
			return err
		},
		"offer": func() error {
			_, err := b.conn.Offer(ctx, b.lock, "A:1", "", 1, shared("A:2"), 0, lua.First)
			return err
		},
		"downgrade":  func() error { _, _, err := b.conn.Downgrade(ctx, b.lock, "A:1", 1, 60_000, 0); return err },
		"force read": force(true), "force write": force(false),
		"inspect": func() error { _, err := b.conn.Inspect(ctx, b.lock, 10); return err },
		"renew": func() error {
			_, _, err := b.conn.Renew(ctx, []lua.Renewal{{Keys: b.lock, Owner: "A:1", Lease: 1000}})
			return err
		},
	}
}

// Data that nobody of ours wrote stays as it is, and the error says which key it is.
func TestForeignDataBesideReadersAndWriters(t *testing.T) {
	redistest.Together(t)
	for name, write := range map[string][]string{
		"string":               {"SET", "", "x"},
		"list":                 {"RPUSH", "", "1"},
		"hash without mode":    {"HSET", "", "name", "Ada", "mail", "ada@example.org"},
		"hash with other mode": {"HSET", "", "mode", "dark"},
		"a lock":               {"HSET", "", "a:1", "1", "token", "t5/3000"},
		"a lock of Redisson":   {"HSET", "", "5b2d7d7e-0000-4000-8000-1234567890ab:47", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				b := newRW(t, s)
				write := slices.Clone(write)
				write[1] = b.lock.Name()
				require.NoError(t, b.do(write...).Error())
				before := dump(t, b.conn.Client)
				for use, call := range b.uses(t.Context()) {
					err := call()
					if use != "renew" { // a hold whose lock has gone
						require.Equal(t, lua.WrongType, lua.Classify(err), "%s: %v", use, err)
						require.ErrorContains(t, b.conn.Foreign(t.Context(), b.lock, err), b.lock.Name(), use)
					}
					require.Equal(t, before, dump(t, b.conn.Client), use)
				}
				require.False(t, b.renew("A:1", 1000))
			})
		})
	}
}

// The same of a companion, as long as anybody needs it: an error comes before the first write. Whoever gives
// back is not kept from it.
func TestForeignCompanionsOfReadersAndWriters(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newRW(t, s)
		for _, client := range []string{"A", "B"} {
			b.open(client)
		}
		for half, hold := range map[string]lua.Claim{"nobody": {}, "reader": reads("A:1"), "writer": shared("A:1")} {
			for place, key := range map[string]string{"queue": b.lock.All()[1], "token": b.lock.All()[2], "state": b.lock.All()[3]} {
				for use, call := range b.uses(t.Context()) {
					what := fmt.Sprintf("%s of %s: %s", place, half, use)
					require.NoError(t, b.do("FLUSHALL").Error())
					if hold.Owner != "" {
						require.Positive(t, b.claim(hold, lua.First).Token)
					}
					foreign := []string{"ZADD", key, "1", "x"}
					require.NoError(t, b.do("DEL", key).Error())
					require.NoError(t, b.do(foreign...).Error())
					before := dump(t, b.conn.Client)
					err := call()
					after := dump(t, b.conn.Client)
					require.Equal(t, before[key], after[key], what)
					if err != nil {
						require.Equal(t, lua.WrongType, lua.Classify(err), "%s: %v", what, err)
						require.ErrorContains(t, b.conn.Foreign(t.Context(), b.lock, err), key, what)
						delete(before, b.lock.All()[2]) // which counts
						delete(after, b.lock.All()[2])
						require.Equal(t, before, after, what)
					}
					switch use {
					case "release", "rest", "leave", "renew":
						require.NoError(t, err, what)
					}
				}
			}
		}
	})
}

// Without memory what gives back, renews or downgrades is not refused. What would take leaves nothing.
func TestReadersAndWritersWhenMemoryIsFull(t *testing.T) {
	redistest.Together(t)
	b := newRW(t, redistest.NewProcess(t))
	for _, client := range []string{"A", "B"} {
		b.open(client)
	}
	for half, hold := range map[string]lua.Claim{"nobody": {}, "reader": reads("A:1"), "writer": shared("A:1")} {
		for _, waits := range []lua.Claim{{}, reads("B:1"), shared("B:1")} {
			for use, call := range b.uses(t.Context()) {
				what := fmt.Sprintf("%s, %s waits: %s", half, waits.Entry(), use)
				require.NoError(t, b.do("FLUSHALL").Error())
				if hold.Owner != "" {
					require.Positive(t, b.claim(hold, lua.First).Token)
				}
				if waits.Owner != "" {
					b.claim(waits, lua.First) // nobody holds: it does
				}
				before := dump(t, b.conn.Client)
				require.NoError(t, b.do("CONFIG", "SET", "maxmemory", "1").Error())
				err := call()
				require.NoError(t, b.do("CONFIG", "SET", "maxmemory", "0").Error())
				if err != nil {
					require.ErrorContains(t, err, "OOM", what)
					require.Equal(t, before, dump(t, b.conn.Client), what)
				}
				switch use {
				case "release", "rest", "leave", "renew", "downgrade", "inspect", "force read", "force write":
					require.NoError(t, err, what)
				}
				owner := b.inspect().Owner
				if use == "release" && hold.Owner != "" && waits.Owner != "" {
					require.Contains(t, owner, "B:1", "%s: the next has it", what)
				}
				if use == "downgrade" && half == "writer" {
					require.Equal(t, "1", b.fields()["A:1"], what)
					require.Equal(t, "read", b.fields()["mode"], what)
				}
				endless, err := b.do("EVAL", `for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) < 0 then return key end
end
return ''`, "0").ToString()
				require.NoError(t, err)
				require.Empty(t, endless, "%s: stays for ever", what)
			}
		}
	}
}
