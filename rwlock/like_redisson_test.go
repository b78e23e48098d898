package rwlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rwlock"
)

// Redisson's tests show these as well: docs/appendix/redisson-tests.md.

// Who writes and re-enters on the terms of a shorter lease keeps the longer one.
func TestReentryKeepsTheLease(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	c := open(t, s)
	h := take(t, newLock(t, c, latchkey.WithFixedLease(time.Minute)).Write())
	again, err := newLock(t, c, latchkey.WithFixedLease(100*time.Millisecond)).Write().Lock(h.Context())
	require.NoError(t, err)
	require.Greater(t, again.Remaining(), 50*time.Second)
	plain := s.Client(t)
	left, err := plain.Do(t.Context(), plain.B().Pttl().Key("a").Build()).AsInt64()
	require.NoError(t, err)
	require.Greater(t, left, int64(50_000))
	unlock(t, again)
	require.True(t, h.Held())
	unlock(t, h)
}

// A hold that was downgraded is renewed as one that read from the beginning.
func TestDowngradedIsRenewed(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		h := take(t, newLock(t, open(t, s), latchkey.WithLease(300*time.Millisecond)).Write())
		require.NoError(t, rwlock.Downgrade(t.Context(), h))
		began := time.Now()
		require.Never(t, func() bool { return !h.Held() }, time.Second, 10*time.Millisecond)
		require.Greater(t, time.Since(began), 900*time.Millisecond, "three leases")
		plain := s.Client(t)
		there, err := plain.Do(t.Context(), plain.B().Exists().Key("a").Build()).AsInt64()
		require.NoError(t, err)
		require.EqualValues(t, 1, there)
		unlock(t, h)
	})
}
