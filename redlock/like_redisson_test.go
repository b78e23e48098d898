package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/redlock"
)

// A wait with an end has the lock when it is released before that, as docs/appendix/redisson-tests.md says.
func TestTryLockForIsGranted(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		servers := five(t, s.Beside)
		a, err := redlock.New(clients(t, servers), "a")
		require.NoError(t, err)
		b, err := redlock.New(clients(t, servers), "a")
		require.NoError(t, err)
		for range 10 {
			held, err := a.Lock(t.Context())
			require.NoError(t, err)
			type outcome struct {
				hold *latchkey.Hold
				err  error
			}
			got := make(chan outcome)
			go func() {
				h, err := b.TryLockFor(t.Context(), 20*time.Second)
				got <- outcome{h, err}
			}()
			require.NoError(t, held.Unlock(t.Context()))
			next := <-got
			require.NoError(t, next.err)
			require.Greater(t, next.hold.Token(), held.Token())
			require.NoError(t, next.hold.Unlock(t.Context()))
		}
	})
}
