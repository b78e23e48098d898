package rlock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// When ForceUnlock returns, what lingered in its own process is nobody's, though no message has come yet.
func TestForceUnlockOfWhatLingersHere(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", time.Minute)
		for range 100 {
			pair(t, l)
			_, err := l.ForceUnlock(t.Context())
			require.NoError(t, err)
			h, err := l.Lock(t.Context())
			require.NoError(t, err)
			state, err := l.Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, h.Token(), state.Holder.Token, "Redis was asked")
			require.NoError(t, h.Unlock(t.Context()))
			_, err = l.ForceUnlock(t.Context())
			require.NoError(t, err)
		}
	})
}

// A ForceUnlock elsewhere ends what lingers here as soon as its message has come: from then on the process
// asks Redis, and does not take what another one has. The next renewal, which would find out, is far away.
func TestForceUnlockElsewhereOfWhatLingersHere(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		here, there := open(t, s), open(t, s)
		for n := range 20 {
			l := lingering(t, here, fmt.Sprint(n), time.Minute, latchkey.WithLease(24*time.Hour))
			other, err := rlock.New(there, fmt.Sprint(n))
			require.NoError(t, err)
			lost := pair(t, l)
			state, err := l.Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, latchkey.ModeLinger, state.Holder.Mode)
			held, err := other.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, held)
			h, err := other.Lock(t.Context())
			require.NoError(t, err)
			require.Greater(t, h.Token(), lost)
			require.Eventually(t, func() bool {
				mine, err := l.TryLock(t.Context())
				if err == nil { // the message has not come yet
					_ = mine.Unlock(t.Context())
				}
				return errors.Is(err, latchkey.ErrNotAcquired)
			}, 20*time.Second, 20*time.Millisecond) // so seldom that the tokens for its turns last
			require.NoError(t, h.Unlock(t.Context()))
		}
	})
}
