package lua_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/redistest"
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

// stays expects that the count of free permits goes after that time; 0: never.
func (b *sem) stays(after time.Duration) {
	b.t.Helper()
	ttl := b.number("PTTL", b.lock.Name())
	if after == 0 {
		require.EqualValues(b.t, -1, ttl)
		return
	}
	require.InDelta(b.t, after.Milliseconds(), ttl, 60_000)
	require.Greater(b.t, b.number("PTTL", b.stated()), ttl, "until then it is known that the time to live is ours")
}

func (b *sem) stated() string { return b.lock.All()[4] + ":stated" }

// A semaphore whose capacity was stated goes when no client has stated it for a day. What is out then is known by its
// holders: no permit is lost, and none is made.
func TestLeasedPermitsThatAreNotUsed(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Leased)
		b.declare(3)
		b.stays(unused)
		require.Positive(t, b.take("A:1", "1", lua.First).Token)
		require.Positive(t, b.take("A:2", "1", lua.Again).Token)
		require.EqualValues(t, -1, b.number("PTTL", b.lock.All()[5]), "the leases are not ended by it")
		require.EqualValues(t, 1, b.number("PEXPIRE", b.lock.Name(), "1000"))
		require.EqualValues(t, 1, b.declare(3))
		b.stays(unused)

		require.EqualValues(t, 1, b.number("DEL", b.lock.Name()))
		require.EqualValues(t, 1, b.declare(3), "two are out")
		require.True(t, b.give("A:1", 0))
		require.EqualValues(t, 1, b.number("DEL", b.lock.Name()))
		require.True(t, b.give("A:2", 0), "a late one")
		require.Zero(t, b.number("EXISTS", b.lock.Name()))
		require.EqualValues(t, 3, b.declare(3))
		b.stays(unused)

		b.set(4)
		b.stays(0)
		require.EqualValues(t, 4, b.census().Free)

		// Redisson gave it a time to live.
		require.NoError(t, b.do("FLUSHALL").Error())
		b.set(3)
		b.stays(0)
		require.EqualValues(t, 1, b.number("PEXPIRE", b.lock.Name(), "100000"))
		require.Positive(t, b.take("A:3", "1", lua.First).Token)
		require.InDelta(t, 100_000, b.number("PTTL", b.lock.All()[5]), 10_000)
	})
}

// Nobody knows how many plain permits are out. So the semaphore has a time to live only while all are free.
func TestPlainPermitsThatAreNotUsed(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, many := range []bool{false, true} { // requests in one script
			b := newSem(t, s, lua.Plain)
			require.NoError(t, b.do("FLUSHALL").Error())
			trade := func(r lua.Request) {
				t.Helper()
				requests := []lua.Request{r}
				if many {
					requests = append(requests, lua.Give(lua.Ending{Owner: "A:99"}))
				}
				require.EqualValues(t, 1, taken(t, b.trade(requests...)[0]).Token)
			}
			b.declare(3)
			b.stays(unused)
			trade(lua.Take(request("A:1", "2"), lua.First))
			b.stays(0)
			trade(lua.Take(request("A:2", "1"), lua.Again))
			trade(lua.Put("A:3", 1))
			b.stays(0)
			require.EqualValues(t, 1, b.declare(3), "nobody knows how many are out")
			b.stays(0)
			trade(lua.Put("A:4", 2))
			b.stays(unused)

			// The statement has gone, and the number has its time to live.
			require.EqualValues(t, 1, b.number("DEL", b.stated()))
			trade(lua.Take(request("A:5", "1"), lua.First))
			b.stays(0)
			trade(lua.Put("A:6", 1))
			b.stays(0)

			require.NoError(t, b.do("FLUSHALL").Error())
			b.declare(3)
			b.set(4)
			b.stays(0)
			trade(lua.Take(request("A:7", "1"), lua.First))
			trade(lua.Put("A:8", 1))
			b.stays(0)
			require.Zero(t, b.number("EXISTS", b.stated()))
		}
	})
}

// Redisson's use of a semaphore is not seen. Beside it the time is ninety days.
func TestPermitsBesideRedissonThatAreNotUsed(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, family := range []lua.Family{lua.Leased, lua.Plain} {
			b := newSem(t, s, family)
			b.lock.TakesTurns()
			require.NoError(t, b.do("FLUSHALL").Error())
			b.declare(3)
			b.stays(90 * unused)
			require.Positive(t, b.take("A:1", "1", lua.First).Token)
			if family == lua.Plain {
				require.EqualValues(t, 1, taken(t, b.trade(lua.Put("A:2", 1))[0]).Token)
			} else {
				require.True(t, b.give("A:1", 0))
			}
			b.stays(90 * unused)
		}
	})
}
