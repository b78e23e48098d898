package lua_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

const unused = 24 * time.Hour

// declare states how many permits there are, and returns how many are free then.
func (b *sem) declare(n int64) (free int64) {
	b.t.Helper()
	b.ids++
	_, _, free, err := b.conn.Capacity(b.t.Context(), b.lock, fmt.Sprint("T:", b.ids), 0, lua.Declare, n, most, 1)
	require.NoError(b.t, err)
	return free
}

// stays expects that the count of free permits goes after that time.
func (b *sem) stays(after time.Duration) {
	b.t.Helper()
	ttl := b.number("PTTL", b.lock.Name())
	require.InDelta(b.t, after.Milliseconds(), ttl, 60_000)
	require.Greater(b.t, b.number("PTTL", b.stated()), ttl, "until then it is known that the time to live is ours")
}

func (b *sem) stated() string { return b.lock.All()[4] + ":stated" }

// A semaphore whose capacity was stated goes when no client has used it for a day. What is out then is known by its
// holders: no permit is lost, and none is made.
func TestLeasedPermitsThatAreNotUsed(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		require.Zero(t, b.declare(0))
		require.Zero(t, b.number("DBSIZE"), "no client has stated anything")
		b.declare(3)
		b.stays(unused)
		for i, soon := range []string{"43300000", "1000000"} {
			require.EqualValues(t, 1, b.number("PEXPIRE", b.lock.Name(), soon))
			require.Positive(t, b.take(fmt.Sprint("A:", i+1), "1", []lua.Mode{lua.First, lua.Again}[i]).Token)
			require.EqualValues(t, -1, b.number("PTTL", b.lock.All()[5]), "the leases are not ended by it")
		}
		for _, n := range []int64{3, 0} {
			require.EqualValues(t, 1, b.number("PEXPIRE", b.lock.Name(), "1000000"))
			require.EqualValues(t, 1, b.number("PEXPIRE", b.lock.All()[5], "1000000"))
			require.EqualValues(t, 1, b.declare(n))
			b.stays(unused)
			require.EqualValues(t, -1, b.number("PTTL", b.lock.All()[5]))
		}

		require.EqualValues(t, 1, b.number("DEL", b.lock.Name()))
		require.EqualValues(t, 1, b.declare(3), "two are out")
		require.True(t, b.give("A:1", 0))
		require.EqualValues(t, 1, b.number("DEL", b.lock.Name()))
		require.True(t, b.give("A:2", 0), "a late one")
		require.Zero(t, b.number("EXISTS", b.lock.Name()))
		require.EqualValues(t, 3, b.declare(3))
		b.stays(unused)

		// Redisson gave it a time to live.
		require.NoError(t, b.do("FLUSHALL").Error())
		b.set(3)
		require.EqualValues(t, 3, b.declare(0))
		require.EqualValues(t, -1, b.number("PTTL", b.lock.Name()))
		require.EqualValues(t, 1, b.number("PEXPIRE", b.lock.Name(), "100000"))
		for i := range 2 {
			require.Positive(t, b.take(fmt.Sprint("A:", i+3), "1", []lua.Mode{lua.First, lua.Again}[i]).Token)
			require.InDelta(t, 100_000, b.number("PTTL", b.lock.All()[5]), 10_000)
		}
	})
}

// How many plain permits are out is not known. So it takes thirty days.
func TestPlainPermitsThatAreNotUsed(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, redissons := range []bool{false, true} {
			b, after := newSem(t, s, lua.Plain), 30*unused
			if redissons {
				b.lock.TakesTurns()
				after = 90 * unused // what Redisson's clients use is not seen
			}
			require.NoError(t, b.do("FLUSHALL").Error())
			require.EqualValues(t, 3, b.declare(3))
			b.stays(after)
			require.Positive(t, b.take("A:1", "2", lua.First).Token)
			b.stays(after)
			for i, n := range []int64{3, 0, 5} {
				require.EqualValues(t, 1, b.number("PEXPIRE", b.lock.Name(), "1000000"))
				require.EqualValues(t, 1+i, b.declare(n))
				b.stays(after)
				require.EqualValues(t, 1, taken(t, b.trade(lua.Put(fmt.Sprint("A:", i+2), 1))[0]).Token)
			}
		}
	})
}
