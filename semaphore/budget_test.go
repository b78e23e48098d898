package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// generous is a budget that a test does not use up.
var generous = semaphore.WithBudget(100, time.Second)

// passable returns n permits, which are all there are, of a delegate: they may be passed on.
func passable(t testing.TB, sem, other *semaphore.Semaphore, n int) *semaphore.Permits {
	t.Helper()
	require.NoError(t, other.SetCapacity(t.Context(), n))
	held := acquire(t, other, n)
	first := inQueue(t, sem, n, 0)
	second := inLine(t, sem, n, 1)
	require.NoError(t, held.Release(t.Context()))
	require.NoError(t, first.Granted(t).Release(t.Context()))
	return second.Granted(t)
}

// inLine begins to wait for permits, and returns once so many stand in the line of their process.
func inLine(t testing.TB, sem *semaphore.Semaphore, n, standing int) *attempt {
	t.Helper()
	a := begin(t, sem, n)
	require.Eventually(t, func() bool { return semaphore.InLine(sem) == standing }, long, 5*time.Millisecond, "%d in line", standing)
	return a
}

// inQueue is acquireLater that returns once also the process knows that its request is in the queue.
func inQueue(t testing.TB, sem *semaphore.Semaphore, n, before int) *attempt {
	t.Helper()
	known := semaphore.InQueue(sem)
	a := acquireLater(t, sem, n, before)
	require.Eventually(t, func() bool { return semaphore.InQueue(sem) == known+1 }, long, 5*time.Millisecond)
	return a
}

// Those in the line get the permits in the order in which they came, with growing tokens, and no command is
// sent. Who queues in Redis for them gets the next that come back.
// Rule 41.
func TestPassedOn(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), generous)
		p := passable(t, sem, newSemaphore(t, open(t, s.Option())), 2)
		delegate := inQueue(t, sem, 2, 0)
		var line []*redistest.Attempt[*semaphore.Permits]
		for n := range 5 {
			line = append(line, inLine(t, sem, 2, n+1))
		}
		require.Eventually(t, func() bool { return p.Remaining() > 3*time.Second }, long, 5*time.Millisecond, "it was renewed once")
		plain := s.Client(t)
		before := s.Scripts(t)
		for n, a := range line {
			last := p.Token()
			require.NoError(t, p.Release(t.Context()))
			require.Equal(t, 2, p.Count())
			require.ErrorIs(t, p.Err(), latchkey.ErrReleased)
			require.ErrorIs(t, p.Release(t.Context()), latchkey.ErrNotHeld)
			require.ErrorIs(t, p.ReleaseN(t.Context(), 1), latchkey.ErrNotHeld, "they are somebody else's")
			p = a.Granted(t)
			require.Equal(t, last+1, p.Token())
			require.Equal(t, 2, p.Count())
			require.True(t, p.Held())
			for _, later := range line[n+1:] {
				select {
				case <-later.Ended:
					require.Fail(t, "out of turn")
				default:
				}
			}
		}
		require.Equal(t, before, s.Scripts(t), "scripts")
		delegate.Waits(t)
		require.NoError(t, p.Release(t.Context()))
		q := delegate.Granted(t)
		require.Greater(t, q.Token(), p.Token())
		require.NoError(t, q.Release(t.Context()))
		numbers(t, sem, 2, 0)
		clean(t, plain, "a", "2")
	})
}

// Nothing is passed on with a budget of no holds, nor of leases that are fixed.
func TestNotPassedOn(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, opts := range [][]semaphore.Option{
			{semaphore.WithCapacity(1), semaphore.WithoutLocalHandOff()},
			{semaphore.WithCapacity(1), generous, semaphore.WithFixedLease(5 * time.Second)},
			{semaphore.WithCapacity(1), yielding, semaphore.WithFixedLease(5 * time.Second)},
		} {
			sem := newSemaphore(t, open(t, s.Option()), opts...)
			p := acquire(t, sem, 1)
			var waiting []*attempt
			for n := range 4 {
				waiting = append(waiting, inQueue(t, sem, 1, n)) // each has an entry of its own
			}
			for _, a := range waiting {
				require.NoError(t, p.Release(t.Context()))
				p = a.Granted(t)
				require.Positive(t, p.Sequence())
			}
			require.NoError(t, p.Release(t.Context()))
			_, err := sem.Delete(t.Context())
			require.NoError(t, err)
		}
	})
}

// When so many holds have begun, who waits in another process has its turn, although others stand in line.
// Rule 41.
func TestBudgetOfHolds(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), semaphore.WithBudget(2, time.Second))
		other := newSemaphore(t, open(t, s.Option()))
		p := passable(t, sem, other, 1)
		next := acquireLater(t, other, 1, 0)
		delegate := inQueue(t, sem, 1, 1)
		first, second, third := inLine(t, sem, 1, 1), inLine(t, sem, 1, 2), inLine(t, sem, 1, 3)
		require.NoError(t, p.Release(t.Context()))
		require.NoError(t, first.Granted(t).Release(t.Context()))
		next.Waits(t)
		p = second.Granted(t)
		require.NoError(t, p.Release(t.Context()))
		q := next.Granted(t)
		require.Greater(t, q.Token(), p.Token())
		require.NoError(t, q.Release(t.Context()))
		require.NoError(t, delegate.Granted(t).Release(t.Context()))
		require.NoError(t, third.Granted(t).Release(t.Context()))
		numbers(t, sem, 1, 0)
		clean(t, s.Client(t), "a", "1")
	})
}

// Permits of a hold that outlasts the span go to who waits in another process.
// Rule 41.
func TestBudgetOfTime(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const span = 300 * time.Millisecond
		sem := newSemaphore(t, open(t, s.Option()), semaphore.WithBudget(5000, span))
		other := newSemaphore(t, open(t, s.Option()))
		p := passable(t, sem, other, 1)
		began := time.Now()
		next := acquireLater(t, other, 1, 0)
		delegate := inQueue(t, sem, 1, 1)
		line := inLine(t, sem, 1, 1)
		<-time.After(time.Until(began.Add(span)))
		require.NoError(t, p.Release(t.Context()))
		require.NoError(t, next.Granted(t).Release(t.Context()))
		require.NoError(t, delegate.Granted(t).Release(t.Context()))
		require.NoError(t, line.Granted(t).Release(t.Context()))
	})
}

// Permits go to the first in the line that wants as many, on the same lease.
// Rule 41.
func TestPassedToWhoWantsAsMany(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := open(t, s.Option())
		sem := newSemaphore(t, c, generous)
		brief := newSemaphore(t, c, semaphore.WithLease(8*time.Second), generous)
		p := passable(t, sem, newSemaphore(t, open(t, s.Option())), 2)
		delegate := inQueue(t, sem, 1, 0)
		fewer, elsewhere, more := inLine(t, sem, 1, 1), inLine(t, brief, 2, 2), inLine(t, sem, 2, 3)
		former := p
		require.NoError(t, p.Release(t.Context()))
		p = more.Granted(t)
		require.Equal(t, former.Token()+1, p.Token())
		numbers(t, sem, 0, 2)
		require.NoError(t, p.ReleaseN(t.Context(), 1))
		require.Equal(t, []int{2, 1}, []int{former.Count(), p.Count()})
		require.NoError(t, p.Release(t.Context()))
		require.NoError(t, delegate.Granted(t).Release(t.Context()))
		require.NoError(t, fewer.Granted(t).Release(t.Context()))
		require.NoError(t, elsewhere.Granted(t).Release(t.Context()))
		numbers(t, sem, 2, 0)
		clean(t, s.Client(t), "a", "2")
	})
}

// What is left after a part was given back goes to who is first in Redis.
// Rule 41.
func TestRestIsNotPassedOn(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), generous)
		p := passable(t, sem, newSemaphore(t, open(t, s.Option())), 2)
		delegate := inQueue(t, sem, 2, 0)
		line := inLine(t, sem, 1, 1)
		require.NoError(t, p.ReleaseN(t.Context(), 1))
		require.NoError(t, p.Release(t.Context()))
		require.NoError(t, delegate.Granted(t).Release(t.Context()))
		require.NoError(t, line.Granted(t).Release(t.Context()))
		numbers(t, sem, 2, 0)
	})
}

// Permits that were taken without waiting go back to Redis.
// Rule 41.
func TestAttemptIsNotPassedOn(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(2), generous)
		for name, take := range map[string]func() (*semaphore.Permits, error){
			"try":   func() (*semaphore.Permits, error) { return sem.TryAcquire(t.Context(), 2) },
			"drain": func() (*semaphore.Permits, error) { return sem.Drain(t.Context()) },
		} {
			p, err := take()
			require.NoError(t, err, name)
			delegate := inQueue(t, sem, 2, 0)
			line := inLine(t, sem, 2, 1)
			require.NoError(t, p.Release(t.Context()))
			require.NoError(t, delegate.Granted(t).Release(t.Context()))
			require.NoError(t, line.Granted(t).Release(t.Context()))
		}
		numbers(t, sem, 2, 0)
	})
}

// A delegate that gives up leaves its place in the queue to the next in the line, if that wants as many.
// Rule 41.
func TestPlaceIsLeft(t *testing.T) {
	redistest.Together(t)
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		other := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(2))
		for heir := 1; heir <= 2; heir++ {
			sem := newSemaphore(t, open(t, s.Option()), generous)
			held := acquire(t, other, 2)
			delegate := inQueue(t, sem, 1, 0)
			waits := inLine(t, sem, heir, 1)
			last := acquireLater(t, other, 2, 1)
			delegate.Cancel()
			require.ErrorIs(t, delegate.Outcome(t), context.Canceled)
			require.Eventually(t, func() bool {
				state, err := other.Inspect(t.Context())
				return err == nil && state.Waiting == 2 && state.Waiters[heir-1].Permits == heir
			}, long, 5*time.Millisecond, "its place, or one of its own at the end")
			require.NoError(t, held.Release(t.Context()))
			if heir == 1 {
				require.NoError(t, waits.Granted(t).Release(t.Context()))
				require.NoError(t, last.Granted(t).Release(t.Context()))
			} else {
				require.NoError(t, last.Granted(t).Release(t.Context()))
				require.NoError(t, waits.Granted(t).Release(t.Context()))
			}
		}
	})
}

func TestBudgetOptions(t *testing.T) {
	redistest.Together(t)
	c := open(t, redistest.New(t).Option())
	for name, opts := range map[string][]semaphore.Option{
		"holds":      {semaphore.WithBudget(-1, time.Second)},
		"many holds": {semaphore.WithBudget(5001, time.Second)},
		"span":       {semaphore.WithBudget(1, 0)},
		"long span":  {semaphore.WithBudget(1, time.Second+1)},
		"overtaking": {generous, semaphore.WithOvertaking()},
		"capacity":   {generous, semaphore.WithWaitForCapacity()},
	} {
		_, err := semaphore.New(c, "a", opts...)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
	}
	_, err := semaphore.New(c, "a", semaphore.WithoutLocalHandOff(), semaphore.WithOvertaking())
	require.NoError(t, err)
}
