package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// hasty lets a client notice soon that its commands are refused, and close its inbox.
func hasty(o *session.Options) { o.Lease = 300 * time.Millisecond }

// comeAndGo locks and unlocks each of these again and again, with little patience, until stop is called.
func comeAndGo(t *testing.T, locks ...*lock.Lock) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var goroutines sync.WaitGroup
	for _, l := range locks {
		goroutines.Go(func() {
			for ctx.Err() == nil {
				short, end := context.WithTimeout(ctx, 200*time.Millisecond)
				if h, err := l.Lock(short); err == nil {
					_ = h.Unlock(short) // refused, for now
				}
				end()
			}
		})
	}
	return func() {
		cancel()
		goroutines.Wait()
	}
}

// A server that answers with errors for a while, also to what belongs to a subscription, costs time and
// nothing else.
// Rule 21.
func TestServerRefusesForAWhile(t *testing.T) {
	redistest.Together(t)
	for code, begin := range redistest.Refusals {
		t.Run(code, func(t *testing.T) {
			s := redistest.NewProcess(t, redistest.Refusing()...)
			c := open(t, s.Option(), hasty)
			holder := newLock(t, open(t, s.Option()), "a", false)
			h := mustLock(t, holder)
			waiter := lockLater(t, newLock(t, c, "a", true))
			queued(t, holder, 1)
			latch, err := countdown.New((*latchkey.Client)(c.Handle()), "latch")
			require.NoError(t, err)
			_, err = latch.TrySetCount(t.Context(), 1)
			require.NoError(t, err)
			opened := make(chan error, 1)
			go func() { opened <- latch.Await(t.Context()) }()
			end := begin(t, s)
			stop := comeAndGo(t, newLock(t, c, "b", true))
			time.Sleep(1500 * time.Millisecond) // several leases: the client has given its subscriptions up
			end()
			stop()
			require.NoError(t, h.Unlock(t.Context()))
			require.NoError(t, waiter.Granted(t).Unlock(t.Context()))
			require.NoError(t, c.Check(t.Context()))
			_, err = latch.CountDown(t.Context())
			require.NoError(t, err)
			select {
			case err := <-opened:
				require.NoError(t, err)
			case <-time.After(long):
				require.FailNow(t, "the latch's waiter was forgotten")
			}
		})
	}
}

// A client is closed, and soon, whatever the server answers just then.
// Rule 21.
func TestCloseWhileRefused(t *testing.T) {
	for code, begin := range redistest.Refusals {
		t.Run(code, func(t *testing.T) {
			s := redistest.NewProcess(t, redistest.Refusing()...)
			h := mustLock(t, newLock(t, open(t, s.Option()), "a", true))
			defer func() { _ = h.Unlock(context.Background()) }()
			c := open(t, s.Option(), hasty)
			waiter := lockLater(t, newLock(t, c, "a", false))
			queued(t, newLock(t, c, "a", false), 1)
			end := begin(t, s)
			began := time.Now()
			closeNow(c)
			require.Less(t, time.Since(began), 2*time.Second)
			<-waiter.Ended
			require.ErrorIs(t, waiter.Err, fail.ErrClosed)
			end()
		})
	}
}

// Close ends within two seconds, Shutdown with its context, when Redis is silent, whatever waits; and the
// process does not go round in circles afterwards.
// Rule 22.
func TestCloseOnASilentServer(t *testing.T) {
	shutdown := func(wait time.Duration) func(*session.Client) {
		return func(c *session.Client) {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			_ = c.Shutdown(ctx) // it may have had to give up
		}
	}
	for _, wrapped := range []bool{false, true} {
		for kind, shuts := range map[string]struct {
			shut  func(c *session.Client)
			limit time.Duration
		}{
			// It waits for a second, the command timeout, and then three times for a quarter of one.
			"close":                        {closeNow, 2 * time.Second},
			"shutdown":                     {shutdown(500 * time.Millisecond), 1500 * time.Millisecond},
			"shutdown by an ended context": {shutdown(0), 2 * time.Second},
		} {
			name := kind
			if wrapped {
				name += " of a wrapped client"
			}
			t.Run(name, func(t *testing.T) {
				redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
					o := session.DefaultOptions()
					client := s.Client(t)
					c, err := core.Wrap(client, client, o)
					if !wrapped {
						closeNow(c)
						c, err = core.Open(s.Option(), o)
					}
					require.NoError(t, err)
					holding := open(t, s.Option())
					h := mustLock(t, newLock(t, holding, "a", true))
					var waiters []*attempt
					for range 5 {
						waiters = append(waiters, lockLater(t, newLock(t, c, "a", false)))
					}
					queued(t, newLock(t, holding, "a", false), 5)
					plain, err := semaphore.NewCounting((*latchkey.Client)(c.Handle()), "plain")
					require.NoError(t, err)
					_, err = plain.TrySetPermits(t.Context(), 0)
					require.NoError(t, err)
					drawn := make(chan error, 5)
					for range 5 {
						go func() { drawn <- plain.Acquire(context.Background(), 1) }()
					}
					require.Eventually(t, func() bool {
						waiting, err := plain.Waiting(t.Context())
						return err == nil && waiting > 0 // others may stand in line here
					}, long, 5*time.Millisecond)
					s.Stop(t)
					began := time.Now()
					shuts.shut(c)
					s.Within(t, began, shuts.limit)
					for _, w := range waiters {
						<-w.Ended
						require.ErrorIs(t, w.Err, fail.ErrClosed)
					}
					for range 5 {
						require.ErrorIs(t, <-drawn, fail.ErrClosed)
					}
					s.Continue(t)
					require.NoError(t, h.Unlock(t.Context()))
				})
			})
		}
	}
}

// What was held when Shutdown gave up waiting is released by its Unlock all the same.
// Rule 22.
func TestUnlockAfterClose(t *testing.T) {
	redistest.Together(t)
	each(t, func(t *testing.T, s *redistest.Server, delegate bool) {
		c := open(t, s.Option())
		h, other := mustLock(t, newLock(t, c, "a", delegate)), mustLock(t, newLock(t, c, "b", delegate))
		sem, err := newSemaphore(c, "s", semaphore.WithCapacity(2))
		require.NoError(t, err)
		p, err := sem.Acquire(t.Context(), 2)
		require.NoError(t, err)
		closeNow(c)
		require.ErrorIs(t, h.Err(), fail.ErrClosed)
		later := open(t, s.Option())
		waiter := lockLater(t, newLock(t, later, "a", delegate))
		queued(t, newLock(t, later, "a", delegate), 1)
		require.NoError(t, h.Unlock(t.Context()))
		require.NoError(t, waiter.Granted(t).Unlock(t.Context()), "long before its lease")
		require.NoError(t, p.Unlock(t.Context()))
		free, err := newSemaphore(later, "s")
		require.NoError(t, err)
		available, err := free.Available(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, available)
		require.ErrorIs(t, h.Unlock(t.Context()), fail.ErrNotHeld, "once")
		require.NoError(t, other.Unlock(t.Context())) // the last one: the connections end with it
		require.ErrorIs(t, other.Unlock(t.Context()), fail.ErrNotHeld)
	})
}

// The connections on which replicas are waited for survive it, too.
// Rule 21.
func TestServerRefusesWhoWaitsForReplicas(t *testing.T) {
	redistest.Together(t)
	for _, code := range []string{"BUSY", "MISCONF"} {
		t.Run(code, func(t *testing.T) {
			s := redistest.NewProcess(t, redistest.Refusing()...)
			_ = redistest.NewProcess(t, "--replicaof", "127.0.0.1", fmt.Sprint(s.Port(t)))
			c := open(t, s.Option(), hasty, replicas(1))
			var locks []*lock.Lock
			for i := range 8 {
				locks = append(locks, newLock(t, c, fmt.Sprint("a", i), true))
			}
			stop := comeAndGo(t, locks...)
			for range 5 {
				end := redistest.Refusals[code](t, s)
				end()
			}
			stop()
			require.NoError(t, c.Check(t.Context()))
		})
	}
}

// Many Unlocks at the same time release after a Close, too: none waits for others to share a script with.
func TestManyUnlocksAfterClose(t *testing.T) {
	s := redistest.NewProcess(t)
	c := open(t, s.Option())
	var holds []*grant.Hold
	for n := range 200 {
		holds = append(holds, mustLock(t, newLock(t, c, fmt.Sprint(n), true)))
	}
	closeNow(c)
	errs := make([]error, len(holds))
	var all sync.WaitGroup
	for n, h := range holds {
		all.Go(func() { errs[n] = h.Unlock(t.Context()) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}
