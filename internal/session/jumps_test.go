package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/barrier"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// beyond is further than what is left of a lease of the default options.
const beyond = session.DefaultLease + time.Second

// Rule 24.
func TestForwardJumpOfAnIdleHolder(t *testing.T) {
	redistest.Together(t)
	t.Run("lock", func(t *testing.T) {
		s := redistest.NewJumping(t)
		h := mustLock(t, newLock(t, told(t, s.Option(), lease(time.Minute)), "a", true))
		s.Jump(t, time.Minute+time.Second)
		other := rival(t, newLock(t, told(t, s.Option()), "a", true).TryLock)
		require.Less(t, ends(t, h), soon, "and not a third of a minute")
		require.True(t, other.Held())
		require.Greater(t, other.Token(), h.Token(), "which separates them until then")
	})
	t.Run("permits", func(t *testing.T) {
		s := redistest.NewJumping(t)
		sem := func() sem {
			sem, err := newSemaphore(told(t, s.Option(), lease(time.Minute)), "a", semaphore.WithCapacity(1))
			require.NoError(t, err)
			return sem
		}
		h, err := sem().Acquire(t.Context(), 1)
		require.NoError(t, err)
		s.Jump(t, time.Minute+time.Second)
		other := rival(t, func(ctx context.Context) (*grant.Hold, error) { return sem().TryAcquire(ctx, 1) })
		require.Less(t, ends(t, h), soon)
		require.True(t, other.Held())
	})
}

// reckoned is longer than a client reckons what the clock shows that it was told: see clock.Clock.
const reckoned = 120 * time.Millisecond

// Whatever the client asks tells of the jump: it is noticed before the answer is used.
// Rule 24.
func TestForwardJumpOfABusyHolder(t *testing.T) {
	redistest.Together(t)
	asks := map[string]func(t *testing.T, c *session.Client, s *redistest.Server){
		"a free lock": func(t *testing.T, c *session.Client, _ *redistest.Server) {
			<-time.After(reckoned)
			require.True(t, rival(t, newLock(t, c, "b", true).Lock).Held(), "what was granted after the jump is kept")
		},
		"a lock that is held": func(t *testing.T, c *session.Client, s *redistest.Server) {
			rival(t, newLock(t, told(t, s.Option()), "b", true).Lock)
			_, err := newLock(t, c, "b", true).TryLock(t.Context())
			require.ErrorIs(t, err, fail.ErrNotAcquired)
		},
		"a permit": func(t *testing.T, c *session.Client, _ *redistest.Server) {
			sem, err := newSemaphore(c, "b", semaphore.WithCapacity(1))
			require.NoError(t, err)
			require.True(t, rival(t, func(ctx context.Context) (*grant.Hold, error) { return sem.Acquire(ctx, 1) }).Held())
		},
	}
	for name, ask := range asks {
		t.Run(name, func(t *testing.T) {
			s := redistest.NewJumping(t)
			c := told(t, s.Option())
			short := mustLock(t, newLock(t, c, "a", true))
			whole := rival(t, newLock(t, c, "long", true, terms.WithLease(time.Hour)).Lock)
			s.Jump(t, beyond)
			ask(t, c, s)
			require.False(t, short.Held())
			require.True(t, whole.Held(), "of which enough was left")
			require.Eventually(t, func() bool {
				ttl, err := s.Client(t).Do(t.Context(), s.Client(t).B().Pttl().Key("long").Build()).AsInt64()
				return err == nil && ttl > (time.Hour-5*time.Second).Milliseconds()
			}, long, 10*time.Millisecond, "and which has its whole lease again")
		})
	}
}

// A name that is ahead of the clock has it asked for again and again, which does not keep others from asking:
// what is granted after a jump is not lost because of it.
// Rule 24.
func TestForwardJumpBesideANameAhead(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewJumping(t)
	c := told(t, s.Option())
	ahead, b := newLock(t, c, "ahead", true), newLock(t, c, "b", true)
	s.Jump(t, time.Hour)
	require.NoError(t, mustLock(t, ahead).Unlock(t.Context()))
	s.Jump(t, -time.Hour)
	require.NoError(t, mustLock(t, newLock(t, c, "c", true)).Unlock(t.Context()))
	time.Sleep(1100 * time.Millisecond) // a second look of the same name would come too soon
	require.NoError(t, mustLock(t, ahead).Unlock(t.Context()))
	s.Jump(t, beyond)
	<-time.After(reckoned)
	h := mustLock(t, b)
	_, err := b.TryLock(t.Context()) // which is told the clock
	require.ErrorIs(t, err, fail.ErrNotAcquired)
	require.True(t, h.Held())
	require.NoError(t, h.Unlock(t.Context()))
}

// The clock goes back just after a holder has died: the next has what it held two seconds (until somebody
// asks) and a lease later.
// Rule 24.
func TestBackwardJumpAfterADeath(t *testing.T) {
	const left = 2 * time.Second
	bound := left + soon
	t.Run("lock", func(t *testing.T) {
		s := redistest.NewJumping(t)
		dead := redistest.StartWorker(t, "hold "+s.Addr, "LATCHKEY_TEST_LEASE="+left.String())
		dead.Next(t, "held")
		waiter := lockLater(t, newLock(t, told(t, s.Option()), "a", true))
		queued(t, newLock(t, told(t, s.Option()), "a", true), 1)
		dead.Kill()
		s.Jump(t, -time.Hour)
		began := time.Now()
		next := waiter.Granted(t)
		require.True(t, next.Held())
		require.NoError(t, next.Unlock(t.Context()))
		require.Less(t, time.Since(began), bound, "and not an hour")
	})
	t.Run("permits", func(t *testing.T) {
		s := redistest.NewJumping(t)
		p := redistest.NewProxy(t, s)
		sem := func(option rueidis.ClientOption) sem {
			sem, err := newSemaphore(told(t, option, lease(left)), "a", semaphore.WithCapacity(1))
			require.NoError(t, err)
			return sem
		}
		next := sem(s.Option())
		_, err := sem(p.Option()).Acquire(t.Context(), 1)
		require.NoError(t, err)
		p.Silence(true) // it is as good as dead
		s.Jump(t, -time.Hour)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		h := rival(t, func(context.Context) (*grant.Hold, error) { return next.Acquire(ctx, 1) })
		require.Less(t, time.Since(began), bound)
		require.True(t, h.Held())
	})
	t.Run("party", func(t *testing.T) {
		s := redistest.NewJumping(t)
		p := redistest.NewProxy(t, s)
		short := left
		party := func(option rueidis.ClientOption) *barrier.Barrier {
			b, err := barrier.New((*latchkey.Client)(told(t, option).Handle()), "a", 3, barrier.WithLease(short))
			require.NoError(t, err)
			return b
		}
		require.NoError(t, party(p.Option()).Join(t.Context()))
		p.Silence(true)
		s.Jump(t, -time.Hour)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		_, err := party(s.Option()).Await(ctx)
		require.ErrorIs(t, err, barrier.ErrBroken)
		require.Less(t, time.Since(began), bound)
	})
	t.Run("participant of a latch", func(t *testing.T) {
		s := redistest.NewJumping(t)
		ttl := left
		l, err := countdown.New((*latchkey.Client)(told(t, s.Option()).Handle()), "a", countdown.WithTTL(ttl))
		require.NoError(t, err)
		_, err = l.TrySetCount(t.Context(), 1)
		require.NoError(t, err)
		s.Jump(t, -time.Hour)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		require.ErrorIs(t, l.Await(ctx), countdown.ErrExpired)
		require.Less(t, time.Since(began), bound)
	})
}

// The parties that wait are told, and each of them the same: their leases are over for Redis. Nobody goes on
// alone.
// Rule 24.
func TestForwardJumpAtABarrier(t *testing.T) {
	s := redistest.NewJumping(t)
	errs := make(chan error, 2)
	for range 2 {
		b, err := barrier.New((*latchkey.Client)(told(t, s.Option()).Handle()), "a", 3)
		require.NoError(t, err)
		go func() {
			_, err := b.Await(t.Context())
			errs <- err
		}()
	}
	b, err := barrier.New((*latchkey.Client)(told(t, s.Option()).Handle()), "a", 3)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		round, err := b.Inspect(t.Context())
		return err == nil && round.Waiting == 2
	}, long, 5*time.Millisecond)
	s.Jump(t, beyond)
	began := time.Now()
	for range 2 {
		require.ErrorIs(t, <-errs, barrier.ErrBroken)
	}
	require.Less(t, time.Since(began), soon)
}

// An attempt is answered at once although its deadline is over by the new clock before it begins.
func TestTryLockAfterAJump(t *testing.T) {
	for _, by := range []time.Duration{beyond, -time.Hour} {
		s := redistest.NewJumping(t)
		l := newLock(t, told(t, s.Option()), "a", true)
		require.NoError(t, mustLock(t, l).Unlock(t.Context()))
		s.Jump(t, by)
		began := time.Now()
		h := rival(t, l.TryLock)
		require.Less(t, time.Since(began), soon)
		require.True(t, h.Held())
		require.NoError(t, h.Unlock(t.Context()))
	}
}

// What is held for a moment at a time is never held when the watch looks. Its grants have the clock read when
// they cannot tell it, so that not each of them asks for the time.
// Rule 24.
func TestShortHoldsReckon(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		c := told(t, s.Option())
		time.Sleep(time.Second)
		session.ReadRoughly(c)
		l := newLock(t, c, "a", true)
		for range 2 {
			require.NoError(t, mustLock(t, l).Unlock(t.Context()))
		}
		require.True(t, session.Reckons(c))
	})
}
