package rwlock_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rwlock"
)

const long = locktest.Long

// attempt is a Lock that runs.
type attempt = redistest.Attempt[*latchkey.Hold]

// What the tests say often.
var (
	check   = locktest.Check
	do      = locktest.Do
	inLine  = locktest.Standing
	later   = locktest.Later[*latchkey.Hold]
	number  = locktest.Number
	open    = locktest.ClientOf
	openAt  = locktest.Client
	take    = locktest.Must[*latchkey.Hold]
	unlock  = locktest.Unlock
	waiting = locktest.Waiting
)

// clean is for keys of read-write locks as well.
func clean(t testing.TB, c rueidis.Client) {
	t.Helper()
	locktest.Clean(t, c, "latchkey_rwlock")
}

func newLock(t testing.TB, c *latchkey.Client, opts ...rwlock.Option) *rwlock.Lock {
	t.Helper()
	l, err := rwlock.New(c, "a", opts...)
	require.NoError(t, err)
	return l
}

// Readers read together, and writers write alone.
func TestHalves(t *testing.T) {
	redistest.Together(t)
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

// A hold that ends at a time of its own ends by then in Redis, too, when it is downgraded.
func TestDowngradeKeepsTheEnd(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		plain := s.Client(t)
		h := take(t, newLock(t, open(t, s), latchkey.WithFixedLease(3*time.Second)).Write())
		require.Eventually(t, func() bool { return h.Remaining() < 2*time.Second }, long, 5*time.Millisecond)
		require.NoError(t, rwlock.Downgrade(t.Context(), h))
		left, err := plain.Do(t.Context(), plain.B().Pttl().Key("a").Build()).AsInt64()
		require.NoError(t, err)
		require.Less(t, left, int64(2100))
		unlock(t, h)
	})
}

// Whoever reads in a process that still believes to write ends that belief.
func TestReadEndsALostWrite(t *testing.T) {
	redistest.Together(t)
	s := redistest.New(t)
	plain := s.Client(t)
	l := newLock(t, open(t, s))
	writes := take(t, l.Write())
	require.NoError(t, plain.Do(t.Context(), plain.B().Del().Key("a").Build()).Error())
	reads, err := l.Read().TryLock(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, writes.Err(), latchkey.ErrLost)
	require.Greater(t, reads.Token(), writes.Token())
	unlock(t, reads)
	require.ErrorIs(t, writes.Unlock(t.Context()), latchkey.ErrLost)
}
