package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/contract"
)

// A server that is killed and started again, with and without an append-only file, with a holder and a waiter
// in place.
func TestRestart(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"append-only": true, "empty": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--appendonly", "no"}
			if kept {
				args = []string{"--appendonly", "yes", "--appendfsync", "always"}
			}
			top := standalone(t, newEngine(t), args...)
			servers := top.servers(t)
			for kind := range contract.AllKinds {
				t.Run(kind, func(t *testing.T) {
					a, b := lock(t, kind, top.open(t), "a"), lock(t, kind, top.open(t), "a")
					h := must(t, a)
					next := contract.Wait(t, b, 0)
					top.nodes[0].kill()
					top.nodes[0].start()
					_, writable := top.serving(t, "a")
					if kept { // so is the lock
						require.Never(t, func() bool { return !h.Held() }, time.Second, 10*time.Millisecond)
						released := time.Now()
						require.NoError(t, h.Unlock(t.Context()))
						got := next.Granted(t)
						require.Less(t, next.At.Sub(released), atOnce)
						require.Greater(t, got.Token(), h.Token())
						require.NoError(t, got.Unlock(t.Context()))
					} else {
						<-h.Context().Done()
						require.Less(t, time.Since(writable), atOnce)
						require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
						got := next.Granted(t)
						require.Less(t, next.At.Sub(writable), atOnce)
						require.Greater(t, got.Token(), h.Token())
						require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
						require.NoError(t, got.Unlock(t.Context()))
						h = got
					}
					takeTurns(t, h.Token(), a, b)
				})
			}
			servers.Clean(t, true)
		})
	}
}
