package redistest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// What the server says of the time, and the ends of its keys, go by the clock that the test sets; what it
// measures does not.
func TestClockJumps(t *testing.T) {
	s := redistest.NewJumping(t)
	client := s.Client(t)
	do := func(args ...string) int64 {
		t.Helper()
		reply := client.Do(t.Context(), client.B().Arbitrary(args...).Build())
		if args[0] == "TIME" {
			parts, err := reply.AsIntSlice()
			require.NoError(t, err)
			return parts[0]*1_000_000 + parts[1]
		}
		n, err := reply.AsInt64()
		require.NoError(t, err)
		return n
	}
	shows := func(ahead time.Duration) {
		t.Helper()
		require.InDelta(t, time.Now().Add(ahead).UnixMicro(), do("TIME"), 1e6)
	}
	shows(0)
	require.NoError(t, client.Do(t.Context(), client.B().Set().Key("k").Value("v").Px(5*time.Second).Build()).Error())
	s.Jump(t, -time.Hour)
	shows(-time.Hour)
	require.Greater(t, do("PTTL", "k"), int64(3_600_000))
	s.Jump(t, time.Hour+10*time.Second)
	shows(10 * time.Second)
	require.EqualValues(t, -2, do("PTTL", "k"))
	require.EqualValues(t, 0, do("EXISTS", "k"))
}
