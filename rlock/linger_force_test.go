package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// When ForceUnlock returns, what lingered in its own process is nobody's, though no message has come yet.
func TestForceUnlockOfWhatLingersHere(t *testing.T) {
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
			require.Equal(t, h.Token(), state.Token, "Redis was asked")
			require.NoError(t, h.Unlock(t.Context()))
			_, err = l.ForceUnlock(t.Context())
			require.NoError(t, err)
		}
	})
}
