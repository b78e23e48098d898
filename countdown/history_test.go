package countdown_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// One CountDown releases 10,000 goroutines in 8 processes; it costs a command in each process, however many
// wait there.
func TestTenThousandWaiters(t *testing.T) {
	const processes, each = 8, 1250
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	l := newLatch(t, open(t, s.Option()))
	set(t, l, 1)
	var workers []*redistest.Worker
	for range processes {
		w := redistest.StartWorker(t, fmt.Sprintf("%s %d", s.Addr, each))
		w.Next(t, "waiting")
		workers = append(workers, w)
	}
	waits(t, plain, processes)
	require.Eventually(t, func() bool { // until all have looked, and looked again after the confirmation
		before := s.Scripts(t)
		<-time.After(300 * time.Millisecond)
		return s.Scripts(t)-before <= processes
	}, long, 5*time.Millisecond)
	before := s.Scripts(t)
	began := time.Now()
	count(t, l, 0)
	var delays []time.Duration
	for _, w := range workers {
		for range each {
			var at int64
			_, err := fmt.Sscan(w.Next(t, "released")[0], &at)
			require.NoError(t, err)
			delays = append(delays, time.Unix(0, at).Sub(began))
		}
	}
	scripts := s.Scripts(t) - before
	slices.Sort(delays)
	at := func(percent int) time.Duration {
		return delays[(len(delays)-1)*percent/100].Round(10 * time.Microsecond)
	}
	t.Logf("%d released in %d processes with %d scripts: first %v, p50 %v, p90 %v, p99 %v, last %v",
		len(delays), processes, scripts, at(0), at(50), at(90), at(99), at(100))
	require.Positive(t, delays[0])
	require.LessOrEqual(t, scripts, int64(1+2*processes), "the count, a reading for each process, and one that was due")
}

// What a wait costs in commands does not depend on how many of a process wait.
func TestCommandsForAnyNumberOfWaiters(t *testing.T) {
	redistest.Together(t)
	cost := func(waiters int) int64 {
		s := redistest.NewProcess(t)
		plain := s.Client(t)
		l, other := newLatch(t, open(t, s.Option())), newLatch(t, open(t, s.Option()))
		set(t, l, 1)
		before := s.Scripts(t)
		var wg sync.WaitGroup
		errs := make(chan error, waiters)
		for range waiters {
			wg.Go(func() {
				if err := l.Await(t.Context()); err != nil {
					errs <- err
				}
			})
		}
		waits(t, plain, 1)
		count(t, other, 0)
		wg.Wait()
		require.Empty(t, errs)
		return s.Scripts(t) - before
	}
	for _, waiters := range []int{1, 100, 5000} {
		n := cost(waiters)
		t.Logf("%d waiters: %d scripts in all", waiters, n)
		// They come one after the other, so on a slow machine there are several looks: far fewer than waiters.
		require.LessOrEqual(t, n, int64(20+waiters/50), "those who come together look together")
	}
}
