package lua_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// Callers whose contexts end while a connection is dialled, or greets, do not end the commands of others.
func TestDialOfAnotherCaller(t *testing.T) {
	redistest.Together(t)
	b := newBench(t, redistest.NewProcess(t))
	for range 30 {
		fresh, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{b.server.Addr}, DisableCache: true})
		require.NoError(t, err)
		conn := lua.Conn{Client: fresh}
		names := make([]*lua.Keys, 16) // for which rueidis has several connections
		for i := range names {
			names[i], err = lua.NewKeys(lua.Locks, string(rune('a'+i)), false)
			require.NoError(t, err)
		}
		var wg sync.WaitGroup
		outcomes := make([]error, len(names))
		for i, name := range names {
			wg.Go(func() {
				for range 4 {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(rand.N(1500*time.Microsecond), cancel)
					_, _ = conn.Inspect(ctx, name, 0)
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), rand.N(1500*time.Microsecond))
					_, _ = conn.Inspect(ctx, name, 0)
					cancel()
				}
			})
			wg.Go(func() { _, outcomes[i] = conn.Inspect(t.Context(), name, 0) })
		}
		wg.Wait()
		fresh.Close()
		for _, err := range outcomes {
			require.NoError(t, err)
		}
	}
}
