package contract

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// semaphores is the contract of the semaphores.
type semaphores struct {
	Servers
	prefix string
	budget []semaphore.Option // of those that wait for their turn; none passes anything on without
}

// Semaphores runs the contract of the semaphores, also of those that pass permits on inside a process.
func Semaphores(t *testing.T, s Servers) {
	all := semaphores{s, "semaphore:", nil}
	all.run(t)
	passing := semaphores{s, "passing:", []semaphore.Option{semaphore.WithBudget(32, 5*time.Millisecond)}}
	t.Run("passing", passing.run)
	if len(s.Options) == 0 && s.Replicas == 0 { // a counting one waits for none
		t.Run("counting", all.counting)
	}
	s.Clean(t, true)
}

func (s semaphores) run(t *testing.T) {
	t.Run("free", s.free)
	if s.budget == nil { // a request that waits for the capacity to grow is not passed in a line
		t.Run("capacity", s.capacity)
	}
	t.Run("limit", s.limit)
	t.Run("fifo", s.fifo)
	t.Run("cancelled", s.cancelled)
	t.Run("renewed", s.renewed)
	t.Run("lease ends", s.leaseEnds)
	t.Run("deleted", s.deleted)
	t.Run("told", s.told)
	t.Run("detached", s.detached)
	t.Run("scripts flushed", s.scriptsFlushed)
	t.Run("connections killed", s.connectionsKilled)
	t.Run("shutdown", s.shutdown)
}

// new returns a semaphore on a client. What it leaves is deleted with the test.
func (s semaphores) new(t testing.TB, c *latchkey.Client, name string, opts ...semaphore.Option) *semaphore.Semaphore {
	t.Helper()
	sem, err := semaphore.New(c, s.prefix+name, append(opts, s.budget...)...)
	require.NoError(t, err)
	return sem
}

// delete removes a semaphore without users, whose permits are all free.
func (s semaphores) delete(t testing.TB, sem *semaphore.Semaphore, permits int) {
	t.Helper()
	require.Eventually(t, func() bool {
		n, err := sem.Available(t.Context())
		return err == nil && n == permits
	}, long, 10*time.Millisecond, "%d are free", permits)
	existed, err := sem.Delete(t.Context())
	require.NoError(t, err)
	require.True(t, existed)
}

func take(t testing.TB, sem *semaphore.Semaphore, n int) *semaphore.Permits {
	t.Helper()
	p, err := sem.Acquire(t.Context(), n)
	require.NoError(t, err)
	return p
}

// want begins to wait for permits, and returns once that is queued behind so many others.
func want(t testing.TB, sem *semaphore.Semaphore, n, before int) *redistest.Attempt[*semaphore.Permits] {
	t.Helper()
	w := redistest.Begin(t, func(ctx context.Context) (*semaphore.Permits, error) { return sem.Acquire(ctx, n) })
	wanted(t, sem, before+1)
	return w
}

func wanted(t testing.TB, sem *semaphore.Semaphore, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		state, err := sem.Inspect(context.Background())
		return err == nil && state.Waiting == n
	}, long, 5*time.Millisecond, "%d entries in the queue", n)
}

// Permits that are free are taken and released, in all slots; whoever does not wait is told when there are
// not enough.
func (s semaphores) free(t *testing.T) {
	a, b := s.open(t), s.open(t)
	for n := range 20 {
		name := fmt.Sprint("free", n)
		mine, other := s.new(t, a, name, semaphore.WithCapacity(3)), s.new(t, b, name)
		last := int64(0)
		for range 3 {
			p := take(t, mine, 2)
			require.True(t, p.Held())
			require.Greater(t, p.Token(), last)
			_, err := other.TryAcquire(t.Context(), 2)
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			q, err := other.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
			require.Greater(t, q.Token(), p.Token())
			last = q.Token()
			require.NoError(t, p.ReleaseN(t.Context(), 1))
			require.Equal(t, 1, p.Count())
			_, err = other.TryAcquire(t.Context(), 2)
			require.ErrorIs(t, err, latchkey.ErrNotAcquired, "one of two was given back")
			require.NoError(t, p.Release(t.Context()))
			require.ErrorIs(t, p.Release(t.Context()), latchkey.ErrNotHeld)
			require.NoError(t, q.Release(t.Context()))
		}
		s.delete(t, mine, 3)
	}
}

// The capacity that one client sets holds for all, and growing serves the waiters.
func (s semaphores) capacity(t *testing.T) {
	mine, other := s.new(t, s.open(t), "capacity"), s.new(t, s.open(t), "capacity", semaphore.WithWaitForCapacity())
	_, err := mine.Acquire(t.Context(), 1)
	require.ErrorIs(t, err, semaphore.ErrNotSet)
	set, err := mine.TrySetCapacity(t.Context(), 2)
	require.NoError(t, err)
	require.True(t, set)
	_, err = mine.Acquire(t.Context(), 3)
	require.ErrorIs(t, err, semaphore.ErrCapacity)
	waits := want(t, other, 3, 0)
	n, err := mine.AddCapacity(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	p := waits.Granted(t)
	require.NoError(t, mine.SetCapacity(t.Context(), 1))
	n, err = mine.Available(t.Context())
	require.NoError(t, err)
	require.Equal(t, -2, n)
	require.NoError(t, p.Release(t.Context()))
	s.delete(t, mine, 1)
}

// However many want some, there are never more out.
func (s semaphores) limit(t *testing.T) {
	const capacity = 5
	clients := []*latchkey.Client{s.open(t), s.open(t), s.open(t)}
	var wg sync.WaitGroup
	var held [3]atomic.Int64
	for n := range held {
		for g := range 9 {
			sem := s.new(t, clients[g%3], fmt.Sprint("limit", n), semaphore.WithCapacity(capacity))
			wg.Go(func() {
				for i := range 15 {
					weight := 1 + (g+i)%capacity
					err := sem.Do(t.Context(), weight, func(context.Context, *semaphore.Permits) error {
						defer held[n].Add(int64(-weight))
						if now := held[n].Add(int64(weight)); now > capacity {
							return fmt.Errorf("%d are held", now)
						}
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	finish(t, &wg)
	for n := range held {
		s.delete(t, s.new(t, clients[0], fmt.Sprint("limit", n)), capacity)
	}
}

// A large request is served before the small ones that came later, and one release serves several.
func (s semaphores) fifo(t *testing.T) {
	mine, other := s.new(t, s.open(t), "fifo", semaphore.WithCapacity(4)), s.new(t, s.open(t), "fifo")
	p := take(t, mine, 3)
	large := want(t, other, 4, 0)
	one, two := want(t, mine, 1, 1), want(t, s.new(t, s.open(t), "fifo"), 2, 2) // one of each process is queued
	_, err := mine.TryAcquire(t.Context(), 1)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "nobody passes")
	require.NoError(t, p.ReleaseN(t.Context(), 1))
	wanted(t, mine, 3) // two are free, and the first of them wants four
	released := time.Now()
	require.NoError(t, p.Release(t.Context()))
	got := large.Granted(t)
	require.Less(t, large.At.Sub(released), prompt)
	require.NoError(t, got.Release(t.Context()))
	for _, w := range []*redistest.Attempt[*semaphore.Permits]{one, two} {
		p := w.Granted(t)
		require.Greater(t, p.Token(), got.Token())
		require.NoError(t, p.Release(t.Context()))
	}
	s.delete(t, mine, 4)
}

func (s semaphores) cancelled(t *testing.T) {
	mine, other := s.new(t, s.open(t), "cancelled", semaphore.WithCapacity(2)), s.new(t, s.open(t), "cancelled")
	p := take(t, mine, 1)
	large, small := want(t, other, 2, 0), want(t, s.new(t, s.open(t), "cancelled"), 1, 1)
	large.Cancel()
	require.ErrorIs(t, large.Outcome(t), context.Canceled)
	require.NoError(t, small.Granted(t).Release(t.Context()))
	require.NoError(t, p.Release(t.Context()))
	s.delete(t, mine, 2)
}

// Permits are renewed, in all slots, for as long as they are held.
func (s semaphores) renewed(t *testing.T) {
	c := s.leased(t, 2500*time.Millisecond) // renewed 1.6 s before its end: longer than a machine stalls
	var held []*semaphore.Permits
	for n := range 20 {
		held = append(held, take(t, s.new(t, c, fmt.Sprint("renewed", n), semaphore.WithCapacity(3)), 3))
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		for _, p := range held {
			require.NoError(t, p.Err())
		}
	}
	for n, p := range held {
		require.NoError(t, p.Release(t.Context()))
		s.delete(t, s.new(t, c, fmt.Sprint("renewed", n)), 3)
	}
}

// A lease that is not renewed ends: its holder knows at that moment, and the permits are the next waiter's at
// most 100 ms later.
func (s semaphores) leaseEnds(t *testing.T) {
	const fixed = 900 * time.Millisecond
	mine := s.new(t, s.leased(t, fixed), "lease", semaphore.WithCapacity(2), semaphore.WithFixedLease(fixed))
	other := s.new(t, s.open(t), "lease")
	began := time.Now()
	p := take(t, mine, 2)
	acquired := time.Now()
	next := want(t, other, 2, 0)
	for asks := s.new(t, s.open(t), "lease"); time.Since(began) < fixed-20*time.Millisecond; { // each has ends of leases looked at
		_, err := asks.TryAcquire(t.Context(), 1)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "another one waits")
		<-time.After(5 * time.Millisecond) // several questions before the lease ends are enough
	}
	isOver(t, p.Context())
	require.ErrorIs(t, context.Cause(p.Context()), latchkey.ErrLost)
	lasts(t, began, fixed)
	got := next.Granted(t)
	require.Less(t, next.At.Sub(acquired), fixed+soon+s.Slow)
	require.Greater(t, next.At.Sub(began), fixed-5*time.Millisecond, "a lease lasts, by a clock that knows milliseconds")
	require.ErrorIs(t, p.Release(t.Context()), latchkey.ErrLost)
	require.NoError(t, got.Release(t.Context()))
	s.delete(t, other, 2)
}

// When a semaphore is deleted its holders lose their permits, and its waiters are told.
func (s semaphores) deleted(t *testing.T) {
	mine, other := s.new(t, s.open(t), "deleted"), s.new(t, s.open(t), "deleted")
	require.NoError(t, mine.SetCapacity(t.Context(), 1))
	p := take(t, mine, 1)
	next := want(t, other, 1, 0)
	existed, err := other.Delete(t.Context())
	require.NoError(t, err)
	require.True(t, existed)
	require.ErrorIs(t, next.Outcome(t), semaphore.ErrNotSet)
	isOver(t, p.Context())
	require.ErrorIs(t, p.Release(t.Context()), latchkey.ErrLost)
}

func (s semaphores) scriptsFlushed(t *testing.T) {
	sem := s.new(t, s.open(t), "scripts", semaphore.WithCapacity(2))
	for range 3 {
		s.do(t, "SCRIPT", "FLUSH")
		p := take(t, sem, 2)
		s.do(t, "SCRIPT", "FLUSH")
		require.NoError(t, p.Release(t.Context()))
	}
	s.delete(t, sem, 2)
}

// Whichever connection is killed, the waiter gets the permits, and long before it would have asked by itself.
func (s semaphores) connectionsKilled(t *testing.T) {
	for _, kind := range []string{"pubsub", "normal"} {
		t.Run(kind, func(t *testing.T) {
			mine := s.new(t, s.open(t), "killed-"+kind, semaphore.WithCapacity(2))
			other := s.new(t, s.open(t), "killed-"+kind)
			p := take(t, mine, 2)
			next := want(t, other, 1, 0)
			require.GreaterOrEqual(t, s.kill(t, kind), 2, "those of both clients")
			released := time.Now()
			require.NoError(t, p.Release(t.Context()))
			got := next.Granted(t)
			require.Less(t, next.At.Sub(released), prompt)
			require.True(t, got.Held())
			require.NoError(t, got.Release(t.Context()))
			s.delete(t, mine, 2)
		})
	}
}

// Shutdown waits for what is held and leaves no waiter behind.
func (s semaphores) shutdown(t *testing.T) {
	mine := s.new(t, s.open(t), "shutdown", semaphore.WithCapacity(2))
	other := take(t, mine, 1)
	c := s.open(t)
	sem := s.new(t, c, "shutdown")
	p := take(t, sem, 1)
	next := want(t, sem, 1, 0)
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(t.Context()) }()
	require.ErrorIs(t, next.Outcome(t), latchkey.ErrClosed)
	require.True(t, p.Held())
	require.NoError(t, p.Release(t.Context()))
	require.NoError(t, reply(t, ended))
	require.NoError(t, other.Release(t.Context()))
	s.delete(t, mine, 2)
}
