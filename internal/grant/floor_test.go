package grant_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// A name whose tokens are ahead of the server's clock, as after the clock was set back, or on another server
// of a cluster, slows no other name, and its tokens spread to none. Its own are handed on inside the process
// as well, and come hardly further ahead than they are used.
// Rule 13.
func TestNameAheadOfTheClock(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		now, err := do(t, plain, "TIME").AsIntSlice()
		require.NoError(t, err)
		ahead := now[0]*1_000_000 + now[1] + time.Hour.Microseconds()
		token := "redisson_lock_token:{ahead}"
		do(t, plain, "SET", token, strconv.FormatInt(ahead, 10))
		c := open(t, s.Option())
		for _, name := range []string{"ahead", "other"} {
			before := s.Scripts(t)
			var all crowd
			all.run(t, newLock(t, c, name, true), 8)
			all.more(t, 20_000)
			all.end()
			turns, scripts := all.turns.Load(), s.Scripts(t)-before
			t.Logf("%s: %d turns, %d scripts", name, turns, scripts)
			require.Less(t, scripts, turns/20, name)
			if name == "ahead" {
				last, err := do(t, plain, "GET", token).AsInt64()
				require.NoError(t, err)
				require.Less(t, last-ahead, 3*turns+200*scripts)
				require.Greater(t, all.last.Load(), ahead)
			} else {
				require.Less(t, all.last.Load(), ahead)
			}
		}
		clean(t, plain)
	})
}
