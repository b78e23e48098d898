package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rwlock"
)

const long = 20 * time.Second

func open(t testing.TB, s *redistest.Server, opts ...latchkey.Option) *latchkey.Client {
	t.Helper()
	c, err := latchkey.New(s.Option(), opts...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, c.Check(context.Background()))
	return c
}

func newLock(t testing.TB, c *latchkey.Client, opts ...rwlock.Option) *rwlock.Lock {
	t.Helper()
	l, err := rwlock.New(c, "a", opts...)
	require.NoError(t, err)
	return l
}

func take(t testing.TB, l *latchkey.Lock) *latchkey.Hold {
	t.Helper()
	h, err := l.Lock(t.Context())
	require.NoError(t, err)
	return h
}

func unlock(t testing.TB, h *latchkey.Hold) {
	t.Helper()
	require.NoError(t, h.Unlock(t.Context()))
}

// Readers read together, and writers write alone.
func TestHalves(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		mine, other := newLock(t, open(t, s)), newLock(t, open(t, s))
		one, two := take(t, mine.Read()), take(t, other.Read())
		three := take(t, mine.Read())
		require.Equal(t, one.Token(), two.Token())
		_, err := other.Write().TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		unlock(t, one)
		unlock(t, two)
		_, err = other.Write().TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		unlock(t, three)
		writes := take(t, other.Write())
		require.Greater(t, writes.Token(), one.Token())
		for _, l := range []*rwlock.Lock{mine, other} {
			_, err = l.Read().TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			_, err = l.Write().TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		}
		unlock(t, writes)
		one = take(t, mine.Read())
		require.GreaterOrEqual(t, one.Token(), writes.Token())
		unlock(t, one)
		redistest.OnlyExpiring(t, s.Client(t))
	})
}
