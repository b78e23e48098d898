package lua_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// The short ways into the queue and out of it against a model, with clients that reckon the clock and others
// that do not. A place has a greater number than all tokens and places before. What a reply says to come
// after lies between the tokens that were granted before it and those that are granted later.
// Rule 3.
func TestShortQueueAgainstModel(t *testing.T) {
	redistest.Together(t)
	redistest.EachServed(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		clients := []string{"A", "B"}
		for _, c := range clients {
			b.open(c)
		}
		rapid.Check(t, func(r *rapid.T) {
			require.NoError(t, b.do("FLUSHALL").Error())
			var owner string
			var queue []string
			var highest, after int64 // of all numbers; what the last reply that says queued has
			ids := 0
			reckons := func() int64 {
				if rapid.Bool().Draw(r, "knows the clock") {
					return 0
				}
				lag := rapid.IntRange(-1000, 100_000).Draw(r, "lag") // it may also have seen a greater token
				return time.Now().UnixMicro() - int64(lag)
			}
			claim := func(id string) lua.Claim {
				return lua.Claim{Owner: id, Lease: 30_000, Clock: reckons()}
			}
			grown := func(n int64) {
				require.Greater(r, n, highest)
				highest = n
			}
			grant := func() {
				owner = ""
				if len(queue) == 0 {
					return
				}
				owner, queue = queue[0], queue[1:]
				state := b.inspect()
				require.Equal(r, owner, state.Owner)
				require.Greater(r, state.Token, after)
				grown(state.Token)
			}
			r.Repeat(map[string]func(*rapid.T){
				"acquire": func(r *rapid.T) {
					ids++
					who := fmt.Sprint(rapid.SampledFrom(clients).Draw(r, "client"), ":", ids)
					a, err := b.conn.Acquire(t.Context(), b.lock, claim(who), 0, lua.First)
					require.NoError(r, err)
					require.Equal(r, owner != "", a.Queued)
					if !a.Queued {
						grown(a.Token)
						owner = who
						return
					}
					require.GreaterOrEqual(r, a.After, highest)
					grown(a.Sequence)
					require.Positive(r, a.Ends)
					require.LessOrEqual(r, a.Ends, int64(30_000))
					queue, after = append(queue, who), a.After
				},
				"ask again": func(r *rapid.T) {
					if len(queue) == 0 {
						r.Skip("nobody waits")
					}
					a, err := b.conn.Acquire(t.Context(), b.lock, claim(rapid.SampledFrom(queue).Draw(r, "id")), 0, lua.Again)
					require.NoError(r, err)
					require.True(r, a.Queued)
					require.Zero(r, a.Sequence, "it is queued already")
					require.GreaterOrEqual(r, a.After, highest)
					after = a.After
				},
				"confirm": func(r *rapid.T) {
					if owner == "" {
						r.Skip("nobody holds it")
					}
					a, err := b.conn.Acquire(t.Context(), b.lock, claim(owner), 0, lua.Again)
					require.NoError(r, err)
					require.Positive(r, a.Token)
				},
				"release": func(r *rapid.T) {
					if owner == "" {
						r.Skip("nobody holds it")
					}
					owned, err := b.conn.Release(t.Context(), b.lock, lua.Ending{Owner: owner, Clock: reckons()}, 0)
					require.NoError(r, err)
					require.True(r, owned)
					grant()
				},
				"cancel": func(r *rapid.T) {
					if len(queue) == 0 {
						r.Skip("nobody waits")
					}
					at := rapid.IntRange(0, len(queue)-1).Draw(r, "at")
					require.False(r, b.release(queue[at], entry(queue[at], 30_000)))
					queue = slices.Delete(queue, at, at+1)
				},
				"": func(r *rapid.T) {
					state := b.inspect()
					require.Equal(r, owner, state.Owner)
					require.Len(r, state.Queue, len(queue))
					if owner != "" {
						require.Positive(r, state.Ends)
						require.LessOrEqual(r, state.Ends, int64(30_000))
					}
				},
			})
			for _, c := range clients { // grants pile up; nobody reads them here
				for len(b.inbox[c].messages) > 0 {
					require.Equal(r, lua.Grant, (<-b.inbox[c].messages).Kind)
				}
			}
		})
	})
}

// Whoever is queued by the short way hears when to ask again, whatever lease may end before.
// Rule 24.
func TestShortQueueEnds(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		const clock = int64(1_700_000_000_500_000) // half a second after a thousand seconds
		lock, pace := b.lock.Name(), "latchkey_pace"+strings.TrimPrefix(b.lock.All()[1], "latchkey_queue")
		queued := func(id string, clock int64) int64 {
			claim := lua.Claim{Owner: id, Lease: 2000, Clock: clock}
			a, err := b.conn.Acquire(t.Context(), b.lock, claim, 0, lua.First)
			require.NoError(t, err)
			require.True(t, a.Queued)
			return a.Ends
		}
		owned := func(value string) {
			require.NoError(t, b.do("FLUSHALL").Error())
			require.NoError(t, b.do("SET", b.lock.All()[2], strconv.FormatInt(clock-1000, 10)).Error())
			require.NoError(t, b.do("HSET", lock, "A:1", value).Error())
			require.NoError(t, b.do("PEXPIRE", lock, "30000").Error())
		}
		granted := func(lease int64, ago time.Duration) string {
			return fmt.Sprintf("t%d/%d!%d", clock-5e9, lease, clock-ago.Microseconds())
		}
		for ago, want := range map[time.Duration]int64{
			0: 2000, 300 * time.Millisecond: 1700, 1900 * time.Millisecond: 100, -50 * time.Millisecond: 2000,
		} {
			for _, lease := range []int64{2000, 30_000} {
				owned(granted(lease, ago))
				require.Equal(t, want, queued("B:1", clock), ago.String())
			}
		}
		now := time.Now().UnixMicro()
		owned(fmt.Sprintf("t%d/1500!%d", now-5e9, now))
		require.NoError(t, b.do("SET", b.lock.All()[2], strconv.FormatInt(now-1, 10)).Error())
		require.LessOrEqual(t, queued("B:1", now), int64(1500), "the owner's lease is shorter than the short lease")
		b.open("B")
		for _, ago := range []time.Duration{-time.Hour, -time.Second, 3 * time.Second, 17 * time.Minute} {
			owned(granted(30_000, ago)) // by the server's clock, which is asked, that is long ago
			a, err := b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "B:1", Lease: 30_000, Clock: clock}, 0, lua.First)
			require.NoError(t, err)
			require.Positive(t, a.Token, "the short lease is over")
		}

		owned(fmt.Sprintf("t%d/30000", clock-5e9))
		require.InDelta(t, 30_000, queued("B:1", clock), 2000)
		require.NoError(t, b.do("SET", pace, "300").Error())
		require.EqualValues(t, 300, queued("B:2", clock+1), "somebody before may have so short a lease")
		require.NoError(t, b.do("SET", pace, "1").Error())
		require.EqualValues(t, 10, queued("B:3", clock+2), "no lease is shorter")
		require.NoError(t, b.do("DEL", pace).Error())
		require.NoError(t, b.do("PEXPIRE", lock, "90000").Error())
		require.EqualValues(t, 30_000, queued("B:4", clock+3), "the clock was set back: no renewal gives more")
		ttl, err := b.do("PTTL", lock).AsInt64()
		require.NoError(t, err)
		require.LessOrEqual(t, ttl, int64(30_000))
	})
}

// The short ways are for leases that need nothing else: nobody must ask sooner because of them, and the key
// lives no longer than they last.
func TestShortWaysOfLeases(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		b.open("B")
		lock, pace := b.lock.Name(), "latchkey_pace"+strings.TrimPrefix(b.lock.All()[1], "latchkey_queue")
		for lease, want := range map[int64]struct {
			pace  string
			lives int64
		}{
			999: {"999", 1999}, 1999: {"1999", 2999}, 2000: {lives: 3000}, 2999: {lives: 3000}, 3000: {lives: 3000},
			5000: {lives: 5000}, 9999: {lives: 9999}, 10_000: {lives: 10_000}, 20_000: {lives: 20_000},
		} {
			require.NoError(t, b.do("FLUSHALL").Error())
			b.acquire("A:1", 60_000, lua.First)
			claim := lua.Claim{Owner: "B:2", Lease: lease}
			a, err := b.conn.Acquire(t.Context(), b.lock, claim, 0, lua.First)
			require.NoError(t, err)
			require.True(t, a.Queued)
			noted, _ := b.do("GET", pace).ToString()
			require.Equal(t, want.pace, noted, lease)
			require.True(t, b.release("A:1", ""))
			ttl, err := b.do("PTTL", lock).AsInt64()
			require.NoError(t, err)
			require.InDelta(t, want.lives, ttl, 500, lease)
			require.Equal(t, min(lease, 2000), (<-b.inbox["B"].messages).Lease)
		}
	})
}

// An attempt that finds an owner of ours takes the short way: it is told how long the lease lasts, and
// nothing else happens. Without a deadline it is not told the time. What has to be done takes the long way,
// whose reply tells that.
// Rule 1.
func TestShortAttempt(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b := newBench(t, s)
		attempt := func(owner string) lua.Acquired {
			t.Helper()
			a := b.acquire(owner, 10_000, lua.Try)
			require.False(t, a.Queued)
			return a
		}
		refused := func(short bool) {
			t.Helper()
			a := attempt("B:1")
			require.Zero(t, a.Token)
			require.Positive(t, a.Ends)
			require.LessOrEqual(t, a.Ends, int64(10_000))
			require.Equal(t, short, a.Now == 0, "the short way")
			require.Equal(t, "A:1", b.inspect().Owner)
		}
		token := attempt("A:1").Token
		require.Positive(t, token)
		refused(true)
		require.Equal(t, token, attempt("A:1").Token, "it may not have heard that it has the lock")
		over, err := b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "B:1", Lease: 10_000, Until: 1}, 0, lua.Try)
		require.NoError(t, err)
		require.True(t, over.Late)
		soon, err := b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "B:1", Lease: 10_000, Until: b.clock() + 10_000_000}, 0, lua.Try)
		require.NoError(t, err)
		require.InDelta(t, b.clock(), soon.Now, 1e6, "one with a deadline is told the time")
		require.Positive(t, soon.Ends)
		b.open("C")
		require.True(t, b.acquire("C:1", 10_000, lua.First).Queued)
		refused(true)

		value := b.value()
		as := func(v string) {
			t.Helper()
			require.NoError(t, b.do("HSET", b.lock.Name(), "A:1", v).Error())
		}
		number := value[:17]
		as(number + "+32/10000")
		refused(true)
		as(number + "l/10000")
		refused(false)
		as(number + "/10000!" + number[1:])
		require.Zero(t, attempt("B:1").Token)
		as(number + "/10000")
		require.NoError(t, b.do("PEXPIRE", b.lock.Name(), "50000").Error())
		refused(false) // the lease was cut
		refused(true)
		for _, v := range []string{"2", number + "0/10000", number + "+12345/10000", number + "/12345678901", number} {
			as(v)
			_, err := b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "B:1", Lease: 10_000}, 0, lua.Try)
			long, errLong := b.conn.Acquire(t.Context(), b.lock, lua.Claim{Owner: "B:1", Lease: 10_000}, 0, lua.Again)
			require.Equal(t, err == nil, errLong == nil, "%s: %v, %v", v, err, errLong)
			require.Zero(t, long.Token)
			b.leave(t, "B:1")
		}
	})
}
