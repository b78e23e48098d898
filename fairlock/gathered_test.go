package fairlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

// Requests for different locks that are ready together share scripts. What one gets does not depend on
// that.
// Rule 51.
func TestDifferentLocksShareScripts(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c, err := rueidisclient.New(s.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		const goroutines, pairs = 64, 50
		var wg sync.WaitGroup
		before := s.Scripts(t)
		for g := range goroutines {
			l, err := fairlock.New(c, fmt.Sprint("own ", g))
			require.NoError(t, err)
			wg.Go(func() {
				last := int64(0)
				for range pairs {
					hold, err := l.Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if hold.Token() <= last || !hold.Held() {
						t.Errorf("token %d after %d", hold.Token(), last)
					}
					last = hold.Token()
					if err := hold.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.Less(t, s.Scripts(t)-before, int64(goroutines*pairs), "half of two for each pair")
	})
}

// Requests that share scripts exclude each other as others do, while contexts end at any time, and
// connections break. Nothing is left.
// Rule 51.
func TestSharedScriptsWhileConnectionsBreak(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		const clients, names, goroutines, enough = 2, 16, 24, 2000
		var inside [names]atomic.Int32
		var had, given atomic.Int64
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		var wg sync.WaitGroup
		for n := range clients {
			c, err := rueidisclient.New(s.Option(), latchkey.WithLease(10*time.Second))
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			for g := range goroutines {
				random := rand.New(rand.NewPCG(uint64(n), uint64(g)))
				wg.Go(func() {
					for ctx.Err() == nil {
						name := random.IntN(names)
						l, err := fairlock.New(c, fmt.Sprint("some ", name))
						if err != nil {
							t.Error(err)
							return
						}
						patience := time.Duration(random.IntN(100)) * time.Millisecond
						waits, cancel := context.WithTimeout(t.Context(), patience)
						hold, err := l.Lock(waits)
						cancel()
						if err != nil {
							if !errors.Is(err, context.DeadlineExceeded) {
								t.Error(err)
							}
							given.Add(1)
							continue
						}
						if had.Add(1) == enough {
							end()
						}
						if inside[name].Add(1) > 1 && hold.Held() {
							t.Errorf("two are inside of %d", name)
						}
						inside[name].Add(-1)
						if err := hold.Unlock(t.Context()); err != nil && !errors.Is(err, latchkey.ErrLost) {
							t.Error(err)
						}
					}
				})
			}
		}
		for ctx.Err() == nil {
			for _, kind := range []string{"normal", "pubsub"} {
				s.KillClients(t, kind)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		wg.Wait()
		require.GreaterOrEqual(t, had.Load(), int64(enough))
		require.Positive(t, given.Load())
		c, err := rueidisclient.New(s.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		for name := range names {
			l, err := fairlock.New(c, fmt.Sprint("some ", name))
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				hold, err := l.TryLock(t.Context())
				return err == nil && hold.Unlock(t.Context()) == nil
			}, 20*time.Second, 10*time.Millisecond, "a request that nobody waits for has it")
		}
	})
}
