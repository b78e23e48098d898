package grant_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// A hold that was granted by message has its whole lease soon, not after a third of the short one.
// Rule 5.
func TestGrantIsConfirmedSoon(t *testing.T) {
	for kind, delegate := range kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
				holder := newLock(t, open(t, s.Option()), "a", delegate)
				h := mustLock(t, holder)
				next := lockLater(t, newLock(t, open(t, s.Option()), "a", delegate))
				queued(t, holder, 1)
				require.NoError(t, h.Unlock(t.Context()))
				got := next.Granted(t)
				began := time.Now()
				require.Eventually(t, func() bool { return got.Remaining() > session.DefaultLease/2 }, long, 5*time.Millisecond)
				s.Within(t, began, 60*time.Millisecond, "it takes 50 ms")
				s.Stop(t)
				time.Sleep(3 * time.Second) // longer than the short lease, which is what it would be trusted for
				require.True(t, got.Held())
				s.Continue(t)
				require.NoError(t, got.Unlock(t.Context()))
			})
		})
	}
}

// An attempt that was given up does nothing when it reaches Redis after all.
// Rule 2.
func TestAttemptThatArrivesLate(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		kinds := map[string]func(c *session.Client) func() (undo func(context.Context) error, err error){
			"lock": func(c *session.Client) func() (func(context.Context) error, error) {
				l := newLock(t, c, "lock", true)
				return func() (func(context.Context) error, error) { return undo(l.TryLock(t.Context())) }
			},
			"semaphore": func(c *session.Client) func() (func(context.Context) error, error) {
				sem, err := newSemaphore(c, "semaphore", semaphore.WithCapacity(1))
				require.NoError(t, err)
				return func() (func(context.Context) error, error) { return undo(sem.TryAcquire(t.Context(), 1)) }
			},
			"counting": func(c *session.Client) func() (func(context.Context) error, error) {
				sem, err := semaphore.NewCounting((*latchkey.Client)(c.Handle()), "counting")
				require.NoError(t, err)
				_, err = sem.TrySetPermits(t.Context(), 1)
				require.NoError(t, err)
				release := func(ctx context.Context) error { return sem.Release(ctx, 1) }
				return func() (func(context.Context) error, error) { return release, sem.TryAcquire(t.Context(), 1) }
			},
		}
		for kind, of := range kinds {
			s.Run(t, kind, func(t *testing.T) {
				p := redistest.NewProxy(t, s)
				c := open(t, p.Option())
				try, other := of(c), of(open(t, s.Option()))
				for range 2 { // the server must know the scripts: it would only answer NOSCRIPT otherwise
					release, err := try()
					require.NoError(t, err)
					require.NoError(t, release(t.Context()))
				}
				judge, kept := redistest.Once(redistest.Withhold, redistest.IsAcquire)
				p.Judge(judge)
				_, err := try()
				require.ErrorIs(t, err, fail.ErrUnavailable)
				require.EqualValues(t, 1, kept.Load())
				require.Eventually(t, func() bool { return c.Check(t.Context()) == nil }, long, 10*time.Millisecond, "on another connection")
				p.Deliver()
				release, err := other()
				require.NoError(t, err, "at once")
				require.NoError(t, release(t.Context()))
			})
		}
	})
}

// undo is what releases a hold.
func undo(h *grant.Hold, err error) (func(context.Context) error, error) {
	if err != nil {
		return nil, err
	}
	return h.Unlock, nil
}

// An attempt whose caller gave up long before its time was over is taken back when it arrives after all, also
// at the end of its time.
func TestAttemptThatArrivesBeforeItsEnd(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		c := open(t, p.Option())
		l, other := newLock(t, c, "a", true), newLock(t, open(t, s.Option()), "a", true)
		for range 2 { // the server must know the scripts
			require.NoError(t, mustLock(t, l).Unlock(t.Context()))
		}
		judge, kept := redistest.Once(redistest.Keep, redistest.IsAcquire)
		p.Judge(func(request string) redistest.Verdict {
			if kept.Load() > 0 { // it is not repeated with success
				return redistest.LoseRequest
			}
			return judge(request)
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := l.TryLock(ctx)
			ended <- err
		}()
		require.Eventually(t, func() bool { return kept.Load() == 1 }, long, 5*time.Millisecond)
		cancel()
		require.Error(t, <-ended)
		p.Judge(nil)
		time.Sleep(time.Until(began.Add(950 * time.Millisecond))) // so late is the copy
		p.Deliver()
		require.Eventually(t, func() bool {
			h, err := other.TryLock(t.Context())
			return err == nil && h.Unlock(t.Context()) == nil
		}, session.DefaultLease/2, 10*time.Millisecond)
	})
}

// After an outage one of those who try gets it: attempts from the outage itself are in nobody's way.
// Rule 2.
func TestTryLockAfterAnOutage(t *testing.T) {
	redistest.Together(t)
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		var locks []*lock.Lock
		for range 5 {
			locks = append(locks, newLock(t, open(t, s.Option()), "cron", true))
		}
		try := func() (got []*grant.Hold) {
			var mu sync.Mutex
			var all sync.WaitGroup
			for _, l := range locks {
				all.Go(func() {
					if h, err := l.TryLock(context.Background()); err == nil {
						mu.Lock()
						defer mu.Unlock()
						got = append(got, h)
					}
				})
			}
			all.Wait()
			return got
		}
		for range 3 {
			s.Stop(t)
			require.Empty(t, try()) // each gives up after a second
			resume := time.AfterFunc(500*time.Millisecond, func() { s.Continue(t) })
			got := try() // just before it returns
			require.Len(t, got, 1)
			require.False(t, resume.Stop())
			require.NoError(t, got[0].Unlock(t.Context()))
		}
	})
}

// A place in the queue that may have been lost is not reported.
func TestSequenceOfALostPlace(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s)
		plain := s.Client(t)
		holder, later := newLock(t, open(t, s.Option()), "a", false), newLock(t, open(t, s.Option()), "a", false)
		h := mustLock(t, holder)
		waiter := lockLater(t, newLock(t, open(t, p.Option()), "a", false))
		queued(t, holder, 1)
		behind := lockLater(t, later)
		queued(t, holder, 2)
		place, err := do(t, plain, "GET", "redisson_lock_token:{a}").AsInt64() // the last that was given out: that of behind
		require.NoError(t, err)
		do(t, plain, "LPOP", "latchkey_queue:{a}") // as a grant does that finds it gone
		judge, lost := redistest.Once(redistest.LoseReply, redistest.IsAgain)
		p.Judge(judge)
		require.Eventually(t, func() bool { return lost.Load() == 1 }, long, 5*time.Millisecond, "it asks, and is queued behind the other")
		queued(t, holder, 2)
		require.NoError(t, h.Unlock(t.Context()))
		first := behind.Granted(t)
		require.NoError(t, first.Unlock(t.Context()))
		last := waiter.Granted(t)
		if n := first.Sequence(); n != 0 { // it is, when it asked again just while it was granted
			require.Equal(t, place, n)
		}
		if n := last.Sequence(); n != 0 {
			require.Greater(t, n, place)
		}
		require.NoError(t, last.Unlock(t.Context()))
	})
}
