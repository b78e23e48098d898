package semaphore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

func TestHolderKilled(t *testing.T) {
	s := redistest.NewProcess(t)
	const length = 1200 * time.Millisecond
	sem, other := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(3)), newSemaphore(t, open(t, s.Option()))
	kept := acquire(t, sem, 1)
	holder := redistest.StartWorker(t, "hold "+s.Addr+" "+length.String()+" 2")
	holder.Next(t, "held")
	next := acquireLater(t, other, 2, 0)
	<-time.After(length / 2) // it renews
	holder.Kill()
	p := next.Granted(t)
	require.NoError(t, kept.Err())
	require.NoError(t, p.Release(t.Context()))
	require.NoError(t, kept.Release(t.Context()))
	numbers(t, sem, 3, 0)
	clean(t, s.Client(t), "a", "3")
}

// A first in the queue whose process died, and which does not fit, is dropped, and those behind it are
// served.
// Rule 6.
func TestKilledHeadIsDropped(t *testing.T) {
	s := redistest.NewProcess(t)
	sem, other := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(3)), newSemaphore(t, open(t, s.Option()))
	held := acquire(t, sem, 2)
	head := redistest.StartWorker(t, "hold "+s.Addr+" 10s 3")
	queued(t, sem, 1)
	next := acquireLater(t, other, 1, 1)
	head.Kill()
	began := time.Now()
	p := next.Granted(t)
	require.Less(t, time.Since(began), 3*time.Second, "it asks every two seconds")
	require.NoError(t, p.Release(t.Context()))

	// When something happens to the semaphore, that is noticed at once.
	head = redistest.StartWorker(t, "hold "+s.Addr+" 10s 3")
	queued(t, sem, 1)
	head.Kill()
	plain := s.Client(t)
	require.Eventually(t, func() bool {
		channels, err := plain.Do(t.Context(), plain.B().PubsubChannels().Pattern("latchkey_inbox:*").Build()).AsStrSlice()
		return err == nil && len(channels) == 2 // those of this process
	}, long, 5*time.Millisecond, "Redis has seen the connection close")
	p, err := other.TryAcquire(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, p.Release(t.Context()))
	require.NoError(t, held.Release(t.Context()))
	numbers(t, sem, 3, 0)
	clean(t, plain, "a", "3")
}

// A process that stopped while it waits costs one short lease in all, whatever it is granted.
// Rule 5.
func TestStoppedWaitersCostOneShortLease(t *testing.T) {
	s := redistest.NewProcess(t)
	sem, other := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(3)), newSemaphore(t, open(t, s.Option()))
	held := acquire(t, sem, 3)
	stopped := redistest.StartWorker(t, "wait "+s.Addr+" 10s 50")
	queued(t, sem, 50)
	next := acquireLater(t, other, 3, 50)
	stopped.Signal(t, redistest.Stop)
	began := time.Now()
	require.NoError(t, held.Release(t.Context()))
	p := next.Granted(t)
	took := time.Since(began)
	t.Logf("a stopped process with 50 entries ahead delayed the next waiter by %v", took)
	require.Less(t, took, 3*time.Second, "two would take four")
	require.NoError(t, p.Release(t.Context()))
	stopped.Signal(t, redistest.Continue)
	for range 50 { // the grants it wakes up with are stale: it asks, and everybody gets a turn
		stopped.Next(t, "held")
	}
	require.Eventually(t, func() bool {
		n, err := sem.Available(t.Context())
		return err == nil && n == 3
	}, long, 5*time.Millisecond)
	clean(t, s.Client(t), "a", "3")
}

// Rule 4.
func TestSubscriptionKilled(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		sem, other := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(2)), newSemaphore(t, open(t, s.Option()))
		for range 5 {
			held := acquire(t, sem, 2)
			one, two := acquireLater(t, other, 1, 0), acquireLater(t, other, 1, 1)
			s.KillClients(t, "pubsub")
			began := time.Now()
			require.NoError(t, held.Release(t.Context()))
			require.NoError(t, one.Granted(t).Release(t.Context()))
			require.NoError(t, two.Granted(t).Release(t.Context()))
			s.Within(t, began, 1500*time.Millisecond, "before it would have asked by itself")
		}
		numbers(t, sem, 2, 0)
	})
}

// Replies get lost, commands are sent again, and the number is right at the end.
// Rule 15.
func TestRepliesLost(t *testing.T) {
	t.Run("leased", func(t *testing.T) {
		repliesLost(t, func(c *latchkey.Client) func(context.Context, int) error {
			sem := newSemaphore(t, c)
			return func(ctx context.Context, n int) error {
				if rand.N(50) == 0 { // one more, and back
					_, err := sem.AddCapacity(t.Context(), 1)
					_, err2 := sem.AddCapacity(t.Context(), -1)
					return errors.Join(err, err2)
				}
				p, err := sem.Acquire(ctx, n)
				if err != nil {
					return err
				}
				if n > 2 && rand.N(2) == 0 {
					err = p.ReleaseN(ctx, 2)
				}
				return errors.Join(err, p.Release(ctx))
			}
		})
	})
	t.Run("counting", func(t *testing.T) {
		repliesLost(t, func(c *latchkey.Client) func(context.Context, int) error {
			sem := newCounting(t, c)
			return func(ctx context.Context, n int) error {
				if rand.N(50) == 0 { // what is drained is put back
					drained, err := sem.Drain(t.Context())
					if err == nil && drained > 0 {
						err = sem.Release(t.Context(), drained)
					}
					return err
				}
				if err := sem.Acquire(ctx, n); err != nil {
					return err
				}
				return sem.Release(ctx, n)
			}
		})
	})
}

func repliesLost(t *testing.T, user func(*latchkey.Client) func(context.Context, int) error) {
	s := redistest.NewProcess(t) // the embedded server takes minutes for so many
	const clients, goroutines, capacity = 4, 8, 10
	pairs := redistest.Rounds(10_000, 20_000)
	sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(capacity))
	numbers(t, sem, capacity, 0)
	var left, lost, gaveUp atomic.Int64
	left.Store(pairs)
	var wg sync.WaitGroup
	for range clients {
		p := redistest.NewProxy(t, s)
		p.Judge(func(request string) redistest.Verdict {
			if redistest.IsScript(request) && rand.N(100) == 0 {
				lost.Add(1)
				return redistest.LoseReply
			}
			return redistest.Pass
		})
		pair := user(open(t, p.Option()))
		for range goroutines {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					ctx, n := t.Context(), 1+rand.N(5)
					if rand.N(20) == 0 { // some give up
						limited, cancel := context.WithTimeout(ctx, rand.N(3*time.Millisecond))
						if err := pair(limited, n); err != nil {
							gaveUp.Add(1)
						}
						cancel()
						continue
					}
					if err := pair(ctx, n); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	t.Logf("%d pairs, %d replies lost, %d gave up", pairs, lost.Load(), gaveUp.Load())
	require.Greater(t, lost.Load(), pairs/500)
	if !t.Failed() {
		require.Eventually(t, func() bool {
			n, err := sem.Available(t.Context())
			return err == nil && n == capacity
		}, long, 10*time.Millisecond, "exact: %v", func() int { n, _ := sem.Available(t.Context()); return n }())
	}
	clean(t, s.Client(t), "a", "10")
}

// Permits that are renewed while Redis is away are lost in time, and free again afterwards.
func TestRedisStopped(t *testing.T) {
	redistest.VirtualPinged(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option(), latchkey.WithLease(500*time.Millisecond)), semaphore.WithCapacity(2))
		p := acquire(t, sem, 2)
		s.Stop(t)
		<-p.Context().Done()
		require.ErrorIs(t, context.Cause(p.Context()), latchkey.ErrLost)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := sem.Acquire(ctx, 1)
		require.ErrorIs(t, err, latchkey.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = sem.AddCapacity(ctx, 1)
		require.Error(t, err)
		require.True(t, errors.Is(err, latchkey.ErrUnknownOutcome) || errors.Is(err, context.DeadlineExceeded))
		s.Continue(t)
		p = acquire(t, sem, 2)
		require.NoError(t, p.Release(t.Context()))
		require.ErrorIs(t, p.Release(t.Context()), latchkey.ErrNotHeld)
	})
}

// A semaphore that Redis has lost: holders know within a renewal, and the number is set again by whoever
// says it.
func TestRedisRestartsEmpty(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(2))
	p := acquire(t, sem, 2)
	next := acquireLater(t, sem, 2, 0)
	token := p.Token()
	s.Restart(t)
	<-p.Context().Done()
	require.ErrorIs(t, context.Cause(p.Context()), latchkey.ErrLost)
	q := next.Granted(t)
	require.Greater(t, q.Token(), token)
	require.NoError(t, q.Release(t.Context()))
	numbers(t, sem, 2, 0)
}
