package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/multilock"
	"github.com/latchkey-go/latchkey/rlock"
)

// The script that takes several locks does not say that they may linger, so nobody would tell that others
// want them. They are given back.
// Rule 40.
func TestABasketDoesNotLinger(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c, plain := open(t, s), s.Client(t)
		a, b := lingering(t, c, "a", 0), lingering(t, c, "b", 0)
		both, err := multilock.New(a, b)
		require.NoError(t, err)
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		for _, take := range []func(context.Context) (*multilock.Hold, error){both.Lock, both.TryLock} {
			h, err := take(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Unlock(t.Context()))
			require.False(t, exists(t, plain, "a"))
			require.False(t, exists(t, plain, "b"))
			g, err := other.TryLock(t.Context())
			require.NoError(t, err)
			require.NoError(t, g.Unlock(t.Context()))
		}
		pair(t, a)
		require.True(t, exists(t, plain, "a"), "by itself it lingers as before")
	})
}
