package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
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
func TestTokensGrowWhileTheMajorityChanges(t *testing.T) {
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

// Servers that gave a smaller token are told of the greatest before the lock is held. Where all gave the
// same one, which is the rule, none is told, also when their clocks differ.
func TestTokenIsWrittenOnlyWhereItIsBehind(t *testing.T) {
	servers := skewed(t)
	plain := plains(t, servers)
	l := lockOf(t, clients(t, servers))
	unlock(t, take(t, l)) // the scripts are known, and the clocks
	pair := func(jumps, told int64) (measured bool) {
		for _, s := range servers[:jumps] {
			s.Jump(t, 3*time.Hour) // of which nobody knows
		}
		read, sent, began := calls(t, plain, "get"), scripts(t, plain), time.Now()
		h := take(t, l)
		unlock(t, h)
		// On a busy machine others may have been asked as well, or a command may have come after the clock had
		// passed what was proposed.
		if busy := time.Since(began); busy > 8*time.Millisecond || jumps == 0 && busy > time.Millisecond {
			return false
		}
		require.Equal(t, told, calls(t, plain, "get")-read, "only raise reads the counter with GET")
		if jumps == 0 { // else leases are renewed when the clients see it
			require.EqualValues(t, 6, scripts(t, plain)-sent)
		}
		return true
	}
	for range 3 {
		for jumps, told := range map[int64]int64{0: 0, 1: 2} {
			for n := 0; !pair(jumps, told); n++ {
				require.Less(t, n, 1000, "never in time")
			}
		}
	}
}
