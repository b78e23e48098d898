package whole_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/semaphore"
)

// Names are bytes, as digests are. What is detached from one that is no text is attached by another client, and waits for
// two that differ are no circle.
func TestNamesThatAreNoText(t *testing.T) {
	t.Parallel()
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		clients := locktest.Clients(t, s, 3)
		for _, name := range []string{"order:\xff\xfe\x01", "blob:\xe2\x28\xa1", "\ufffd"} {
			left, err := rlock.New(clients[0], name)
			require.NoError(t, err)
			h, err := left.Lock(t.Context())
			require.NoError(t, err)
			text, err := h.Detach(t.Context())
			require.NoError(t, err)
			found, err := rlock.New(clients[1], name)
			require.NoError(t, err)
			h, err = found.Attach(t.Context(), text)
			require.NoError(t, err)
			require.NoError(t, h.Unlock(t.Context()))
			one, err := semaphore.New(clients[0], "s"+name, semaphore.WithCapacity(1))
			require.NoError(t, err)
			p, err := one.Acquire(t.Context(), 1)
			require.NoError(t, err)
			text, err = p.Detach(t.Context())
			require.NoError(t, err)
			other, err := semaphore.New(clients[1], "s"+name, semaphore.WithCapacity(1))
			require.NoError(t, err)
			p, err = other.Attach(t.Context(), text)
			require.NoError(t, err)
			require.NoError(t, p.Release(t.Context()))
		}

		// Each of n callers holds one, and the first ones wait for the next one: all of them, or all but the last.
		wait := func(names []string, waiters int) (deadlocks int, seen []latchkey.Deadlock) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var holds []*latchkey.Hold
			for i, name := range names {
				lock, err := rlock.New(clients[i], name, latchkey.WithDeadlockCheck())
				require.NoError(t, err)
				h, err := lock.Lock(ctx)
				require.NoError(t, err)
				holds = append(holds, h)
			}
			ended := make(chan error, waiters)
			for i := range waiters {
				lock, err := rlock.New(clients[i], names[(i+1)%len(names)], latchkey.WithDeadlockCheck())
				require.NoError(t, err)
				go func() {
					h, err := lock.Lock(holds[i].Context())
					if err == nil {
						err = h.Unlock(t.Context())
					}
					ended <- errors.Join(err, holds[i].Unlock(t.Context()))
				}()
			}
			if waiters < len(names) {
				time.Sleep(9 * time.Second)
				var err error
				seen, err = clients[0].Deadlocks(ctx)
				require.NoError(t, err)
				require.NoError(t, holds[waiters].Unlock(t.Context()))
			}
			for range waiters {
				if errors.Is(<-ended, latchkey.ErrDeadlock) {
					deadlocks++
				}
			}
			return deadlocks, seen
		}
		deadlocks, seen := wait([]string{"k\xff", "k\xfe", "k\xfd"}, 2)
		require.Zero(t, deadlocks)
		require.Empty(t, seen)
		deadlocks, _ = wait([]string{"c\xff", "c\xfe"}, 2)
		require.Equal(t, 1, deadlocks)
	})
}
