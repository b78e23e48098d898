package lua_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A single request says in fewer arguments what one of many says: each does the same, whether it is served
// by the short way or somebody waits. longest and answered are among those arguments.
func TestSingleRequestsAreAsOneOfMany(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, family := range []lua.Family{lua.Leased, lua.Plain} {
			for _, longest := range []int{1, lua.DefaultLongest} {
				for _, answered := range []string{"", "7 ", "7 8 "} {
					for _, alone := range []bool{true, false} {
						s.Run(t, fmt.Sprint(family, longest, answered, alone), func(t *testing.T) {
							singleRequests(t, newSem(t, s, family), longest, answered, alone)
						})
					}
				}
			}
		}
	})
}

func singleRequests(t *testing.T, b *sem, longest int, answered string, alone bool) {
	require.NoError(t, b.do("FLUSHALL").Error())
	plain := b.lock.Family() == lua.Plain
	b.open("A")
	send := func(r lua.Request) rueidis.RedisMessage {
		requests := []lua.Request{r}
		if !alone { // and one that finds nothing
			requests = append(requests, lua.Give(lua.Ending{Owner: "A:99"}))
		}
		for _, number := range []string{"7", "8"} {
			require.NoError(t, b.do("SET", b.lock.All()[4]+":A:"+number, "1").Error())
		}
		replies, err := b.conn.Trade(t.Context(), b.lock, 0, longest, answered, requests...)
		require.NoError(t, err)
		for _, number := range []string{"7", "8"} {
			n, err := b.do("EXISTS", b.lock.All()[4]+":A:"+number).AsInt64()
			require.NoError(t, err)
			require.Equal(t, plain && strings.Contains(answered, number), n == 0, "forgotten: %s", number)
		}
		return replies[0]
	}
	trade := func(r lua.Request) lua.Acquired { return taken(t, send(r)) }
	free := func(n int64) { t.Helper(); require.Equal(t, n, b.census().Free) }
	b.set(5)
	for n, mode := range []lua.Mode{lua.First, lua.Again, lua.Try} {
		owner := fmt.Sprint("A:", n+1)
		claim := request(owner, fmt.Sprint(n%2+1))
		token := trade(lua.Take(claim, mode)).Token
		require.Positive(t, token)
		require.Equal(t, token, trade(lua.Take(claim, mode)).Token, "a late copy")
	}
	free(1)
	soon := request("A:4", "1")
	soon.Until = 1
	require.True(t, trade(lua.Take(soon, lua.Try)).Late)
	free(1)
	require.Zero(t, trade(lua.Take(request("A:4", "2"), lua.Try)).Token)
	if plain {
		for _, n := range []int64{1, 2} {
			for range 2 {
				require.EqualValues(t, 1, trade(lua.Put(fmt.Sprint("A:1", n), n)).Token)
			}
		}
		free(4)
		b.set(1)
	}
	require.True(t, trade(lua.Take(request("A:4", "2"), lua.First)).Queued)
	require.Equal(t, request("A:4", "2").Entry(), b.census().Queue[0])
	for _, mode := range []lua.Mode{lua.First, lua.Again} {
		a := trade(lua.Take(request("A:5", "2"), mode))
		if longest == 1 {
			require.ErrorIs(t, a.Refused, lua.ErrFull)
		} else {
			require.True(t, a.Queued)
		}
	}
	if plain {
		require.EqualValues(t, 1, trade(lua.Put("A:13", 1)).Token)
	} else {
		require.EqualValues(t, 1, trade(lua.Give(lua.Ending{Owner: "A:1"})).Token)
	}
	free(0)
	require.NoError(t, b.do("DEL", b.lock.All()[1]).Error())
	if !plain {
		for range 2 {
			_, err := lua.ParseGiven(send(lua.Give(lua.Ending{Owner: "A:2"})))
			require.NoError(t, err)
			free(2)
		}
		require.Empty(t, b.permits("A:2"))
	}
}

// What the short ways of plain permits do leaves a record, with a time to live.
// Rule 15.
func TestShortWaysLeaveRecords(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newSem(t, s, lua.Plain)
		b.set(9)
		b.trade(lua.Take(request("A:1", "3"), lua.First))
		b.trade(lua.Put("A:2", 2))
		for owner, n := range map[string]string{"A:1": "3", "A:2": "2"} {
			key := b.lock.All()[4] + ":" + owner
			record, err := b.do("GET", key).ToString()
			require.NoError(t, err)
			require.Equal(t, n, record)
			ttl, err := b.do("PTTL", key).AsInt64()
			require.NoError(t, err)
			require.InDelta(t, 600_000, ttl, 10_000)
		}
		require.True(t, b.give("A:1", 0), "as whoever takes the take back knows it")
		require.EqualValues(t, 11, b.census().Free)
	})
}

// The short ways give back when the server's memory is full, and take nothing.
// Rule 16.
func TestShortWaysWhenMemoryIsFull(t *testing.T) {
	redistest.Together(t)
	for _, family := range []lua.Family{lua.Leased, lua.Plain} {
		t.Run(family.String(), func(t *testing.T) {
			b := newSem(t, redistest.NewProcess(t), family)
			b.set(3)
			require.Positive(t, b.take("A:1", "1", lua.First).Token)
			require.Positive(t, b.take("A:2", "2", lua.First).Token)
			b.set(map[lua.Family]int64{lua.Leased: 5, lua.Plain: 2}[family])
			require.NoError(t, b.do("CONFIG", "SET", "maxmemory", "1").Error())
			_, err := b.conn.Trade(t.Context(), b.lock, 0, 1000, "", lua.Take(request("B:1", "1"), lua.First))
			require.ErrorContains(t, err, "OOM")
			require.EqualValues(t, 2, b.census().Free)
			for n, owner := range []string{"A:1", "A:2"} {
				if family == lua.Leased {
					require.True(t, b.give(owner, 0))
				} else {
					require.EqualValues(t, 1, must(t, b.trade(lua.Put("A:1"+owner[2:], int64(n+1)))[0]))
				}
			}
			require.EqualValues(t, 5, b.census().Free)
		})
	}
}

// A free number that only looks like one is left as it is, with all that is beside it.
func TestShortWaysLeaveForeignNumbers(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, family := range []lua.Family{lua.Leased, lua.Plain} {
			b := newSem(t, s, family)
			for _, foreign := range []string{"x", "1e3", " 5", "0x5", "999999999999", ""} {
				require.NoError(t, b.do("FLUSHALL").Error())
				b.set(5)
				require.Positive(t, b.take("A:1", "1", lua.First).Token)
				require.NoError(t, b.do("SET", b.lock.Name(), foreign).Error())
				before, err := b.do("KEYS", "*").AsStrSlice()
				require.NoError(t, err)
				requests := []lua.Request{lua.Take(request("A:2", "1"), lua.First), lua.Give(lua.Ending{Owner: "A:1"})}
				if family == lua.Plain {
					requests[1] = lua.Put("A:3", 1)
				}
				for _, r := range requests {
					_, err := b.conn.Trade(t.Context(), b.lock, 0, 1000, "", r)
					require.ErrorContains(t, err, "WRONGTYPE", "%s %q", r[0], foreign)
				}
				after, err := b.do("KEYS", "*").AsStrSlice()
				require.NoError(t, err)
				require.ElementsMatch(t, before, after)
				if family == lua.Leased {
					require.Len(t, b.permits("A:1"), 1)
				}
			}
		}
	})
}
