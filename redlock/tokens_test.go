package redlock_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
)

// skewed are five servers whose clocks differ by hours.
func skewed(t *testing.T) (all []*redistest.Server) {
	for i := range 5 {
		s := redistest.NewJumping(t)
		s.Jump(t, []time.Duration{time.Hour, 0, -time.Hour, 2 * time.Hour, time.Minute}[i])
		all = append(all, s)
	}
	return all
}

// Tokens grow although each grant has another majority, and the server that gave the greatest is never in
// the next one: its clock is set far forward just before, and each holder knows nothing of those before it.
// Rule 36.
func TestTokensGrowWhileTheMajorityChanges(t *testing.T) {
	redistest.Together(t)
	servers := skewed(t)
	last := int64(0)
	for round := range 15 {
		away := []*redistest.Server{servers[round%5], servers[(round+1)%5]}
		for _, s := range away {
			s.Stop(t)
		}
		all := lazy(t, servers)
		for _, i := range []int{2, 3, 4} {
			require.NoError(t, all[(round+i)%5].Check(t.Context())) // it knows the clock
		}
		ahead := servers[(round+2)%5] // which is away in the next round
		ahead.Jump(t, 3*time.Hour)
		h := take(t, lockOf(t, all))
		require.Greater(t, h.Token(), last, "round %d", round)
		require.Greater(t, h.Token(), time.Now().Add(time.Hour).UnixMicro(), "round %d", round)
		last = h.Token()
		unlock(t, h)
		for _, s := range away {
			s.Continue(t)
		}
		for _, c := range all {
			c.Close()
		}
	}
	clean(t, plains(t, servers), long)
}

// settled waits until nothing is sent any more of attempts that were given up: an acquire without an answer
// is cancelled again and again, with pauses that grow.
func settled(t *testing.T, all []*latchkey.Client) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, c := range all {
			if unheard, unsettled := (*session.Handle)(c).Client().Leaving("a"); unheard || unsettled {
				return false
			}
		}
		return true
	}, long, 5*time.Millisecond)
}

// Servers that gave a smaller token are told of the greatest before the lock is held. Where all gave the
// same one, which is the rule, none is told, also when their clocks differ.
// Rule 36.
func TestTokenIsWrittenOnlyWhereItIsBehind(t *testing.T) {
	servers := skewed(t)
	plain := plains(t, servers)
	all := clients(t, servers)
	l := lockOf(t, all)
	unlock(t, take(t, l)) // the scripts are known, and the clocks
	pair := func(jumps, told int64) (measured bool) {
		for _, s := range servers[:jumps] {
			s.Jump(t, 3*time.Hour) // of which nobody knows
		}
		settled(t, all) // of a pair that was too slow
		read, sent, began := calls(t, plain, "get"), scripts(t, plain), time.Now()
		h := take(t, l)
		unlock(t, h)
		busy, quick := time.Since(began), 8*time.Millisecond
		if jumps == 0 {
			quick = time.Millisecond
		}
		now, asked := calls(t, plain, "get")-read, scripts(t, plain)-sent // only raise reads the counter with GET
		if now == told && (asked == 6 || jumps > 0) {                     // after a jump leases are renewed when the clients see it
			return true
		}
		// On a busy machine others may have been asked as well, or a command may have come after the clock had
		// passed what was proposed.
		require.Greater(t, busy, quick, "%d were told, and %d scripts ran", now, asked)
		return false
	}
	for range 3 {
		for jumps, told := range map[int64]int64{0: 0, 1: 2} {
			for n := 0; !pair(jumps, told); n++ {
				require.Less(t, n, 1000, "never in time")
			}
		}
	}
}

// One server of three has a counter that is far ahead, or at the end of what numbers can say. It does not
// count, and nobody else hears of its tokens: the name goes on elsewhere as before. Two such servers are
// believed, as long as their numbers are tokens.
// Rule 36.
func TestCounterOfAMinority(t *testing.T) {
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		counter  func() string
		poisoned int // servers
		ahead    time.Duration
	}{
		"at its end":     {func() string { return "9007199254740990" }, 1, 0},
		"days ahead":     {func() string { return number(time.Now().Add(3 * day)) }, 1, 0},
		"hours ahead":    {func() string { return number(time.Now().Add(5 * time.Hour)) }, 1, 5 * time.Hour},
		"two days ahead": {func() string { return number(time.Now().Add(3 * day)) }, 2, 3 * day},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				servers := five(t, s.Beside)[:3]
				plain, first := plains(t, servers), redlock.First(clients(t, servers), "a")
				plain = slices.Concat(plain[first:], plain[:first]) // in the order in which they are asked
				for _, p := range plain[:c.poisoned] {
					require.NoError(t, p.Do(t.Context(), p.B().Set().Key("redisson_lock_token:{a}").Value(c.counter()).ExSeconds(86400).Build()).Error())
				}
				last := int64(0)
				for range 3 {
					l := lockOf(t, clients(t, servers))
					for range 3 {
						h := take(t, l)
						require.Greater(t, h.Token(), last)
						require.True(t, near(h.Token(), time.Now().Add(c.ahead)), h.Token())
						last = h.Token()
						unlock(t, h)
					}
				}
				told := 0
				for _, p := range plain[c.poisoned:] {
					n, err := p.Do(t.Context(), p.B().Get().Key("redisson_lock_token:{a}").Build()).AsInt64()
					if rueidis.IsRedisNil(err) {
						continue // it was not asked
					}
					require.NoError(t, err)
					if near(n, time.Now().Add(c.ahead)) {
						told++
					} else { // it answered each time when a majority had answered already, and so was told of nothing
						require.True(t, near(n, time.Now()), n)
					}
				}
				if c.poisoned == 1 {
					require.Positive(t, told, "every majority has one that is not ahead by itself")
				}
				clean(t, plain, long)
			})
		})
	}
}

// near reports whether a token is of a time, to the hour.
func near(token int64, at time.Time) bool { return time.UnixMicro(token).Sub(at).Abs() < time.Hour }

func number(at time.Time) string { return strconv.FormatInt(at.UnixMicro(), 10) }

// A server whose counter is not believed counts as one with foreign data: with another one that refuses there
// is no majority, and the error says why.
// Rule 36.
func TestCounterOfAMinorityAndForeignData(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)[:3]
		plain := plains(t, servers)
		require.NoError(t, plain[0].Do(t.Context(), plain[0].B().Set().Key("redisson_lock_token:{a}").Value(number(time.Now().AddDate(0, 0, 3))).Build()).Error())
		require.NoError(t, plain[1].Do(t.Context(), plain[1].B().Set().Key("a").Value("x").Build()).Error())
		_, err := lockOf(t, clients(t, servers)).Lock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrWrongType)
		require.NoError(t, plain[1].Do(t.Context(), plain[1].B().Del().Key("a").Build()).Error())
		unlock(t, take(t, lockOf(t, clients(t, servers))))
		clean(t, plain, long)
	})
}
