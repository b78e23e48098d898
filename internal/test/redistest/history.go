package redistest

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// NewLossyProxy returns a proxy of the server that loses the reply to one in a hundred scripts, and counts
// them.
func NewLossyProxy(t testing.TB, s *Server, lost *atomic.Int64) *Proxy {
	t.Helper()
	p := NewProxy(t, s)
	p.Judge(func(request string) Verdict {
		if strings.Contains(request, "EVAL") && rand.N(100) == 0 {
			lost.Add(1)
			return LoseReply
		}
		return Pass
	})
	return p
}

// KillSubscriptions kills the connections of all subscriptions five times a second while f runs, and returns
// how many.
func KillSubscriptions(t testing.TB, plain rueidis.Client, f func()) (killed int64) {
	t.Helper()
	ended := make(chan struct{})
	go func() { defer close(ended); f() }()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return killed
		case <-ticker.C:
			n, err := plain.Do(t.Context(), plain.B().ClientKill().TypePubsub().Build()).AsInt64()
			require.NoError(t, err)
			killed += n
		}
	}
}

// OnlyExpiring checks that nothing is in Redis but what has a time to live.
func OnlyExpiring(t testing.TB, plain rueidis.Client) {
	t.Helper()
	keys, err := plain.Do(t.Context(), plain.B().Keys().Pattern("*").Build()).AsStrSlice()
	require.NoError(t, err)
	for _, key := range keys {
		ttl, err := plain.Do(t.Context(), plain.B().Pttl().Key(key).Build()).AsInt64()
		require.NoError(t, err)
		require.NotEqual(t, int64(-1), ttl, key)
	}
}
