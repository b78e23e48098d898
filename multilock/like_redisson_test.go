package multilock_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
)

// Of many attempts at the same locks at the same moment exactly one has them all, as docs/appendix/redisson-tests.md
// says.
func TestOneOfManyAttempts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		clients := []*latchkey.Client{open(t, s), open(t, s)}
		for range 20 {
			var g sync.WaitGroup
			var had, refused atomic.Int64
			var won atomic.Pointer[multilock.Hold]
			for n := range 10 {
				m, err := multilock.New(locks(t, clients[n%2], "1", "2", "3")...)
				require.NoError(t, err)
				g.Go(func() {
					switch h, err := m.TryLock(t.Context()); {
					case err == nil:
						had.Add(1)
						won.Store(h)
					case errors.Is(err, latchkey.ErrNotAcquired):
						refused.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			g.Wait()
			require.EqualValues(t, 1, had.Load())
			require.EqualValues(t, 9, refused.Load())
			require.NoError(t, won.Load().Unlock(t.Context()))
		}
	})
}
