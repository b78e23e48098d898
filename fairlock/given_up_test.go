package fairlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/rwlock"
)

// Whoever has given up waiting is not next any more. So the process that gave up is not refused because of
// it, although the wait returned before Redis heard of its end.
// Rule 2.
func TestTryLockAfterAWaitWasGivenUp(t *testing.T) {
	redistest.Together(t)
	kinds := map[string]func(c *latchkey.Client) (*latchkey.Lock, error){
		"fairlock": func(c *latchkey.Client) (*latchkey.Lock, error) { return fairlock.New(c, "a") },
		"rlock":    func(c *latchkey.Client) (*latchkey.Lock, error) { return rlock.New(c, "a") },
		"rwlock": func(c *latchkey.Client) (*latchkey.Lock, error) {
			l, err := rwlock.New(c, "b")
			if err != nil {
				return nil, err
			}
			return l.Write(), nil
		},
	}
	for name, lockOf := range kinds {
		t.Run(name, func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				var locks [2]*latchkey.Lock
				for i := range locks {
					c, err := rueidisclient.New(s.Option())
					require.NoError(t, err)
					t.Cleanup(func() { _ = c.Close() })
					require.NoError(t, c.Check(t.Context()))
					locks[i], err = lockOf(c)
					require.NoError(t, err)
				}
				for range 200 {
					held, err := locks[0].Lock(t.Context())
					require.NoError(t, err)
					_, err = locks[1].TryLockFor(t.Context(), time.Millisecond)
					require.ErrorIs(t, err, latchkey.ErrNotAcquired)
					require.NoError(t, held.Unlock(t.Context()))
					began := time.Now()
					h, err := locks[1].TryLock(t.Context())
					if time.Since(began) >= 50*time.Millisecond && err != nil {
						continue // nobody waits for a cancel that takes so long
					}
					require.NoError(t, err)
					require.NoError(t, h.Unlock(t.Context()))
				}
			})
		})
	}
}
