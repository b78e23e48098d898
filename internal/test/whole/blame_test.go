package whole_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
)

func nothing(context.Context, *latchkey.Hold) error { return nil }

// A refusal asks who holds the lock, with two commands. It waits for the answer for 50 ms, and no longer. A lock that is
// granted costs what it did.
func TestRefusalsAskOnce(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		holder := latchkey.Must(rlock.New(locktest.ClientOf(t, s), "orders"))
		p := redistest.NewProxy(t, s)
		c, err := rueidisclient.New(p.Option())
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		require.NoError(t, c.Check(t.Context()))
		asks := latchkey.Must(rlock.New(c, "orders"))
		free := latchkey.Must(rlock.New(c, "free"))
		hold, err := holder.Lock(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, hold.Unlock(t.Context())) }()
		_, err = asks.TryLock(t.Context()) // the scripts are known from here on
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NoError(t, free.Do(t.Context(), nothing))

		var mu sync.Mutex
		var sent []string
		hangs := -1
		p.Judge(func(request string) redistest.Verdict {
			if strings.Contains(strings.ToUpper(request), "PING") {
				return redistest.Pass
			}
			mu.Lock()
			defer mu.Unlock()
			if sent = append(sent, request); len(sent)-1 == hangs {
				return redistest.Hang
			}
			return redistest.Pass
		})
		count := func(f func() error) (took []string, err error) {
			mu.Lock()
			sent = nil
			mu.Unlock()
			err = f()
			mu.Lock()
			defer mu.Unlock()
			return sent, err
		}
		took, err := count(func() error { return free.Do(t.Context(), nothing) })
		require.NoError(t, err)
		require.Len(t, took, 2, "%q", took)
		took, err = count(func() error { return asks.TryDo(t.Context(), nothing) })
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.Len(t, took, 3, "%q", took)
		require.ErrorContains(t, err, ": held by client ")
		mu.Lock()
		hangs = 1
		mu.Unlock()
		began := time.Now()
		_, err = count(func() error { return asks.TryDo(t.Context(), nothing) })
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NotContains(t, err.Error(), "held by")
		require.Equal(t, 50*time.Millisecond, time.Since(began).Truncate(time.Millisecond), "beside the trip of the attempt")
	})
}
