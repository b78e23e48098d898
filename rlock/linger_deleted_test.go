package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// Somebody deletes the key of a lock that lingers. Its process does not ask Redis, and takes it beside the
// next holder, who has the greater token. It learns of it at its next renewal.
func TestLingerOfADeletedKey(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		l := lingering(t, open(t, s), "a", 0, rlock.WithLease(6*time.Second))
		other, err := rlock.New(open(t, s), "a")
		require.NoError(t, err)
		pair(t, l)
		plain := s.Client(t)
		require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
		next, err := other.TryLock(t.Context())
		require.NoError(t, err)
		h, err := l.TryLock(t.Context())
		require.NoError(t, err)
		require.Less(t, h.Token(), next.Token())
		<-h.Context().Done()
		require.ErrorIs(t, context.Cause(h.Context()), latchkey.ErrLost)
		require.NoError(t, next.Err())
		require.ErrorIs(t, h.Unlock(t.Context()), latchkey.ErrLost)
		_, err = l.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NoError(t, next.Unlock(t.Context()))
	})
}
