package semaphore_test

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

// A name should be one kind of thing only. When somebody has deleted the key of a counting semaphore, and
// takes a lock of that name, the lock is granted to whoever waits for permits. That client does not take it
// for permits, of which it would give back more than there were: it gives the lock back.
//
// Rule 3.
func TestGrantOfAnotherKind(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		one, other := locktest.ClientOf(t, s), locktest.ClientOf(t, s)
		permits, err := semaphore.NewCounting(one, "a")
		require.NoError(t, err)
		done, err := permits.TrySetPermits(t.Context(), 0)
		require.NoError(t, err)
		require.True(t, done)
		ended := make(chan error, 1)
		go func() { ended <- permits.Acquire(context.Background(), 1) }()
		require.Eventually(t, func() bool {
			n, err := permits.Waiting(context.Background())
			return err == nil && n == 1
		}, long, 5*time.Millisecond)

		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
		lock, err := rlock.New(other, "a")
		require.NoError(t, err)
		hold, err := lock.Lock(t.Context())
		require.NoError(t, err, "it was given back")
		err = <-ended
		asked := errors.Is(err, semaphore.ErrNotSet) // between the two
		require.True(t, asked || errors.Is(err, latchkey.ErrWrongType), "%v", err)
		require.NoError(t, hold.Unlock(t.Context()))
	})
}
