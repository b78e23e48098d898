package whole_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/fence"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rueidisclient"
	"github.com/latchkey-go/latchkey/semaphore"
	"github.com/latchkey-go/latchkey/spinlock"
)

// What has no lease stays when its process dies: plain permits stay out, a latch stays shut, until its time to live is
// over, and what was written with a token stays.
func TestWhatHasNoLeaseStays(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		dies, err := rueidisclient.New(p.Option())
		require.NoError(t, err)
		t.Cleanup(func() { _ = dies.Close() })
		lives := locktest.ClientOf(t, s)
		permits := func(c *latchkey.Client) *semaphore.Counting {
			sem, err := semaphore.NewCounting(c, "permits", semaphore.WithCapacity(3))
			require.NoError(t, err)
			return sem
		}
		latch := func(c *latchkey.Client, name string, opts ...countdown.Option) *countdown.Latch {
			l, err := countdown.New(c, name, opts...)
			require.NoError(t, err)
			return l
		}
		require.NoError(t, permits(dies).Acquire(t.Context(), 2))
		for _, l := range []*countdown.Latch{latch(dies, "forever"), latch(dies, "for six minutes", countdown.WithTTL(6*time.Minute))} {
			_, err := l.TrySetCount(t.Context(), 1)
			require.NoError(t, err)
		}
		hold, err := made(t, dies, rlock.New, "lock").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, fence.Set(t.Context(), hold, "written", "by it"))
		wants := func(wait func(context.Context) error) *redistest.Attempt[struct{}] {
			return redistest.Begin(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, wait(ctx) })
		}
		two := wants(func(ctx context.Context) error { return permits(lives).Acquire(ctx, 2) })
		forever, bounded := wants(latch(lives, "forever").Await), wants(latch(lives, "for six minutes").Await)
		p.Die()
		time.Sleep(3 * time.Minute)
		two.Waits(t)
		forever.Waits(t)
		bounded.Waits(t)
		free, err := permits(lives).Available(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, free)
		time.Sleep(3*time.Minute + time.Second)
		require.ErrorIs(t, bounded.Outcome(t), countdown.ErrExpired)
		two.Waits(t)
		forever.Waits(t)
		value, err := s.Client(t).Do(t.Context(), s.Client(t).B().Get().Key("written").Build()).ToString()
		require.NoError(t, err)
		require.Equal(t, "by it", value)
	})
}

// Redis restarts, with nothing in it. A spin lock's hold is lost within a third of its lease. A plain semaphore is not
// set, unless a process states how many permits there are. Permits that were taken before come back on top of these.
// What was written with a token is gone together with the token.
func TestRestartedEmpty(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		const lease = 30 * time.Second
		c := locktest.ClientOf(t, s)
		spins, err := spinlock.New(c, "spins", latchkey.WithLease(lease))
		require.NoError(t, err)
		spun, err := spins.Lock(t.Context())
		require.NoError(t, err)
		locked, err := made(t, c, rlock.New, "fenced").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, fence.Set(t.Context(), locked, "data", "1"))
		sem, err := semaphore.NewCounting(c, "permits")
		require.NoError(t, err)
		_, err = sem.TrySetPermits(t.Context(), 3)
		require.NoError(t, err)
		require.NoError(t, sem.Acquire(t.Context(), 2))

		s.Restart(t)
		began := time.Now()
		<-spun.Context().Done()
		require.ErrorIs(t, spun.Err(), latchkey.ErrLost)
		s.Within(t, began, lease/3)
		require.NoError(t, c.Check(t.Context()))
		require.ErrorIs(t, sem.Acquire(t.Context(), 1), semaphore.ErrNotSet)
		plain := s.Client(t)
		gone, err := plain.Do(t.Context(), plain.B().Exists().Key("data", "latchkey_fence:{data}").Build()).AsInt64()
		require.NoError(t, err)
		require.Zero(t, gone)
		stated, err := semaphore.NewCounting(c, "permits", semaphore.WithCapacity(3))
		require.NoError(t, err)
		require.NoError(t, stated.Acquire(t.Context(), 1))
		require.NoError(t, stated.Release(t.Context(), 1))
		require.NoError(t, sem.Release(t.Context(), 2))
		free, err := sem.Available(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5, free)
	})
}

// A failover loses the write that took a lock: on the new primary the lock is free. For a moment two hold. The first one
// learns it with its next renewal.
func TestFailoverLosesTheWrite(t *testing.T) {
	for _, kind := range []string{"rlock", "fairlock", "spinlock", "write", "permits", "multilock"} {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
				first, second := clocked(t, s, locktest.ClientOf(t, s))[kind], clocked(t, s, locktest.ClientOf(t, s))[kind]
				one, _ := first()
				plain := s.Client(t)
				require.NoError(t, plain.Do(t.Context(), plain.B().Flushall().Build()).Error())
				lost := time.Now()
				two, end := second()
				require.NoError(t, one.Err(), "two hold")
				require.NoError(t, two.Err())
				<-one.Done()
				require.ErrorIs(t, context.Cause(one), latchkey.ErrLost)
				s.Within(t, lost, 10*time.Second/3+10*time.Millisecond, "a third of the lease")
				time.Sleep(time.Minute)
				require.NoError(t, two.Err())
				require.NoError(t, end(t.Context()))
			})
		})
	}
}
