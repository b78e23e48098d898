package locktest

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Records returns the records of clients that are in Redis, with the time to live of each.
func Records(t *testing.T, plain rueidis.Client) map[string]time.Duration {
	t.Helper()
	names, err := plain.Do(t.Context(), plain.B().Keys().Pattern("latchkey_client:*").Build()).AsStrSlice()
	require.NoError(t, err)
	all := map[string]time.Duration{}
	for _, name := range names {
		ms, err := plain.Do(t.Context(), plain.B().Pttl().Key(name).Build()).AsInt64()
		require.NoError(t, err)
		all[name] = time.Duration(ms) * time.Millisecond
	}
	return all
}

// Eventually waits for a condition, and says what it is.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, 20*time.Second, 5*time.Millisecond, what)
}
