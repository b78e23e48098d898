package semaphore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/semaphore"
)

// yielding passes permits on as a semaphore without options does, within a budget that no test uses up.
var yielding = semaphore.Yielding(100, time.Second)

// inTurn releases what is held, and what each of these is granted after that. It finds that none was granted
// before its turn, and returns when all is free.
func inTurn(t testing.TB, held *semaphore.Permits, all ...*attempt) {
	t.Helper()
	for n, a := range all {
		require.NoError(t, held.Release(t.Context()))
		held = a.Granted(t)
		for _, later := range all[n+1:] {
			select {
			case <-later.Ended:
				require.Fail(t, "out of turn", "after %d", n)
			default:
			}
		}
	}
	require.NoError(t, held.Release(t.Context()))
}

// Without a word about it, permits are passed on inside the process while nobody else wants them.
// Rule 41.
func TestPassedOnWhileNobodyElseWaits(t *testing.T) {
	redistest.Together(t)
	redistest.Virtual(t, func(t *testing.T, s *redistest.Server) {
		sem := newSemaphore(t, open(t, s.Option()), yielding)
		p := passable(t, sem, newSemaphore(t, open(t, s.Option())), 1)
		delegate := inQueue(t, sem, 1, 0)
		first, second := inLine(t, sem, 1, 1), inLine(t, sem, 1, 2)
		plain := s.Client(t)
		require.Eventually(t, func() bool { return p.Remaining() > 3*time.Second }, long, 5*time.Millisecond, "it was renewed once")
		before := s.Scripts(t)
		require.NoError(t, p.Release(t.Context()))
		q := first.Granted(t)
		require.Equal(t, p.Token()+1, q.Token())
		require.NoError(t, q.Release(t.Context()))
		q = second.Granted(t)
		require.Equal(t, before, s.Scripts(t), "scripts")
		inTurn(t, q, delegate)
		clean(t, plain, "a", "1")
	})
}

// When another process begins to wait, this one is told. From then on nothing is passed on, and all who stood
// in line are in the queue, also those who come later.
// Rule 41.
func TestYieldsToWhoComes(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	sem, other := newSemaphore(t, open(t, s.Option()), yielding), newSemaphore(t, open(t, s.Option()))
	p := passable(t, sem, other, 1)
	delegate := inQueue(t, sem, 1, 0)
	first, second := inLine(t, sem, 1, 1), inLine(t, sem, 1, 2)
	stranger := begin(t, other, 1)
	queued(t, sem, 4)
	late := begin(t, sem, 1)
	queued(t, sem, 5)
	require.NoError(t, p.Release(t.Context()))
	p = delegate.Granted(t)
	require.NoError(t, p.Release(t.Context()))
	p = stranger.Granted(t)
	for _, a := range []*attempt{first, second, late} {
		select {
		case <-a.Ended:
			require.Fail(t, "it came later")
		default:
		}
	}
	require.NoError(t, p.Release(t.Context()))
	select { // they went to the queue at the same moment
	case <-first.Ended:
		inTurn(t, first.Granted(t), second, late)
	case <-second.Ended:
		inTurn(t, second.Granted(t), first, late)
	}
}

// behind has a process queue behind another one, which holds the only permit.
func behind(t *testing.T, s *redistest.Server) (sem, other *semaphore.Semaphore, p *semaphore.Permits, all []*attempt) {
	t.Helper()
	sem, other = newSemaphore(t, open(t, s.Option()), yielding), newSemaphore(t, open(t, s.Option()))
	require.NoError(t, other.SetCapacity(t.Context(), 1))
	p = acquire(t, other, 1)
	all = append(all, begin(t, other, 1))
	queued(t, sem, 1)
	all = append(all, begin(t, sem, 1))
	queued(t, sem, 2)
	return sem, other, p, all
}

// Who finds others in the queue lets nobody of its process stand in line behind it.
// Rule 41.
func TestYieldsToWhoWaits(t *testing.T) {
	redistest.Together(t)
	for range 20 {
		began := time.Now()
		s := redistest.NewProcess(t)
		sem, _, p, all := behind(t, s)
		before := published(t, s)
		for n := range 2 {
			all = append(all, begin(t, sem, 1))
			queued(t, sem, n+3)
		}
		said := published(t, s)
		inTime := time.Since(began) < time.Second // else a waiter has asked again, as each does after two seconds
		inTurn(t, p, all...)
		if inTime || said == before {
			require.Equal(t, before, said, "the reply has said it, and no message that came of a later question")
			return
		}
	}
	require.Fail(t, "each time a waiter had asked again")
}

// published is how many messages scripts have sent.
func published(t testing.TB, s *redistest.Server) (n int64) {
	t.Helper()
	c := s.Client(t)
	info, err := c.Do(t.Context(), c.B().Info().Section("commandstats").Build()).ToString()
	require.NoError(t, err)
	_, rest, found := strings.Cut(info, "cmdstat_publish:calls=")
	if !found {
		return 0
	}
	_, err = fmt.Sscanf(rest, "%d", &n)
	require.NoError(t, err)
	return n
}

// Who wants more than one permit waits in the queue, and is passed by nobody of its process.
// Rule 41.
func TestYieldsToALargerRequest(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	sem, other := newSemaphore(t, open(t, s.Option()), yielding), newSemaphore(t, open(t, s.Option()))
	p := passable(t, sem, other, 1)
	require.NoError(t, other.SetCapacity(t.Context(), 2))
	rest := acquire(t, other, 1)
	large := begin(t, sem, 2)
	queued(t, sem, 1)
	small := begin(t, sem, 1)
	queued(t, sem, 2)
	last := begin(t, sem, 1)
	queued(t, sem, 3)
	require.NoError(t, rest.Release(t.Context()))
	require.NoError(t, p.Release(t.Context()))
	p = large.Granted(t)
	for _, a := range []*attempt{small, last} {
		select {
		case <-a.Ended:
			require.Fail(t, "it passed")
		default:
		}
	}
	inTurn(t, p) // both at once
	require.NoError(t, small.Granted(t).Release(t.Context()))
	require.NoError(t, last.Granted(t).Release(t.Context()))
}

// When nobody else has waited for a while, those who come stand in line again.
// Rule 41.
func TestStandsInLineAgain(t *testing.T) {
	s := redistest.NewProcess(t)
	sem, other, p, all := behind(t, s)
	inTurn(t, p, all...)
	require.Eventually(t, func() bool {
		p := acquire(t, other, 1)
		delegate := begin(t, sem, 1)
		queued(t, sem, 1)
		second := begin(t, sem, 1)
		stands := false
		require.Eventually(t, func() bool {
			state, err := sem.Inspect(t.Context())
			stands = semaphore.InLine(sem) == 1
			return err == nil && (stands || state.Waiting == 2)
		}, long, 5*time.Millisecond)
		inTurn(t, p, delegate)
		require.NoError(t, second.Granted(t).Release(t.Context()))
		return stands
	}, long, 10*time.Millisecond)
}
