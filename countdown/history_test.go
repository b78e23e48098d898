package countdown_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/countdown"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Rounds of latches whose clients lose replies and subscriptions all the time. Of each round it is written
// down when it was counted down and when waiters went on: none before the last CountDown began, all after
// it, and each CountDown counted once.
// Rule 17.
func TestRounds(t *testing.T) {
	redistest.Together(t)
	s := redistest.NewProcess(t)
	plain := s.Client(t)
	const latches, clients, counts, waiters = 8, 4, 4, 4
	rounds := redistest.Rounds(4_800, 20_000)
	var lost, left atomic.Int64
	left.Store(rounds)
	var sides [clients][latches]*countdown.Latch
	for i := range sides {
		c := open(t, redistest.NewLossyProxy(t, s, &lost).Option())
		for n := range latches {
			l, err := countdown.New(c, fmt.Sprint("latch", n), countdown.WithTTL(time.Hour))
			require.NoError(t, err)
			sides[i][n] = l
		}
	}
	var wg sync.WaitGroup
	for n := range latches {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				var mine [clients]*countdown.Latch
				for i := range mine {
					mine[i] = sides[i][n]
				}
				if err := round(t.Context(), mine[:], counts, waiters); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	began := time.Now()
	killed := redistest.KillSubscriptions(t, plain, wg.Wait)
	t.Logf("%d rounds in %v, %d replies lost, %d subscription connections killed", rounds, time.Since(began).Round(time.Second), lost.Load(), killed)
	require.Greater(t, lost.Load(), rounds/50)
	require.Greater(t, killed, int64(clients))
	redistest.OnlyExpiring(t, plain)
}

// round shuts a latch and opens it, from many sides at once.
func round(ctx context.Context, sides []*countdown.Latch, counts, waiters int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // whoever waits as long was forgotten
	defer cancel()
	if done, err := sides[rand.N(len(sides))].Rearm(ctx, int64(counts)); err != nil || !done {
		return fmt.Errorf("it was shut, or: %w", err)
	}
	began, rest := make([]time.Time, counts), make([]int64, counts)
	released := make([]time.Time, waiters)
	errs := make([]error, counts+waiters)
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			errs[counts+i] = sides[i%len(sides)].Await(ctx)
			released[i] = time.Now()
		})
	}
	for i := range counts {
		wg.Go(func() {
			began[i] = time.Now()
			var tally countdown.Tally
			tally, errs[i] = sides[rand.N(len(sides))].CountDown(ctx)
			rest[i] = tally.Remaining
			if errs[i] == nil && !tally.Counted {
				errs[i] = errors.New("it was open before all had counted")
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	slices.Sort(rest)
	for i, r := range rest {
		if r != int64(i) {
			return fmt.Errorf("a count was lost, or counted twice: %v", rest)
		}
	}
	last := slices.MaxFunc(began, time.Time.Compare)
	if first := slices.MinFunc(released, time.Time.Compare); first.Before(last) {
		return fmt.Errorf("released %v before the last count began", last.Sub(first))
	}
	return nil
}

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
