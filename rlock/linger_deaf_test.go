package rlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// Goroutines stand in line for a lock that may linger while their process is deaf, so nobody tells it that
// others want the lock. Once it hears again the others have their turn, although the line is never empty.
// Rule 40.
func TestLingerOfABusyLineAfterDeafness(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c, p := deaf(t, s)
		l := lingering(t, c, "a", 0)
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		pair(t, l) // its time to linger has begun
		h, err := l.Lock(t.Context())
		require.NoError(t, err)
		busy, rest := context.WithCancel(t.Context())
		var line sync.WaitGroup
		defer line.Wait()
		defer rest()
		for range 4 {
			line.Go(func() {
				for busy.Err() == nil {
					h, err := l.Lock(context.WithoutCancel(busy))
					if assert.NoError(t, err) {
						<-time.After(5 * time.Millisecond)
						assert.NoError(t, h.Unlock(context.WithoutCancel(busy)))
					}
				}
			})
		}
		p.Judge(func(string) redistest.Verdict { return redistest.LoseRequest })
		p.KillAll()
		next := redistest.Begin(t, other.Lock)
		require.Eventually(t, func() bool {
			state, err := other.Inspect(t.Context())
			return err == nil && state.Waiting == 1
		}, 10*time.Second, time.Millisecond)
		p.Judge(nil)
		require.NoError(t, c.Check(t.Context()))
		began := time.Now()
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, next.Granted(t).Unlock(t.Context()))
		s.Within(t, began, 5*time.Second)
	})
}
