package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/redistest/shared"
	"github.com/latchkey-go/latchkey/rwlock"
)

// processes are so many at a time. They share words of memory: how many sections there were, and for each
// process how many of its goroutines are inside.
const processes = 8

// record is the worker: goroutines that read and write, until all processes together have done it so many
// times. What it writes down is what it may trust.
func record(c *latchkey.Client, l *rwlock.Lock, args []string) {
	h, err := openHistory(args[0])
	check(err)
	counts, err := shared.Open(args[1], 64*(1+processes))
	check(err)
	number, err := strconv.Atoi(args[2])
	check(err)
	goal, err := strconv.ParseInt(args[3], 10, 64)
	check(err)
	done := counts.Word(0)
	h.inside = counts.Word(number)
	h.inside.Store(0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for done.Load() < goal {
				if time.Now().UnixMilli()/500%2 == 0 { // every other half second few come, and the queue is empty at times
					<-time.After(rand.N(60 * time.Millisecond))
				}
				n, err := visit(h, l)
				switch {
				case err == nil:
					done.Add(n)
				case !errors.Is(err, latchkey.ErrLost) && !errors.Is(err, latchkey.ErrUnknownOutcome):
					fmt.Println("error", err)
				}
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	check(c.Shutdown(ctx))
	fmt.Println("finished")
}

// visit reads or writes once, or writes and then reads what it has written. It returns how many sections that
// were.
func visit(h *history, l *rwlock.Lock) (sections int64, err error) {
	half, kind := l.Read(), int64(reads)
	if rand.N(8) == 0 {
		half, kind = l.Write(), writes
	}
	const patience = 30 * time.Second
	limit := patience
	if rand.N(50) == 0 { // some give up
		limit = rand.N(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	hold, err := half.Lock(ctx)
	cancel()
	if err != nil {
		if limit < patience {
			return 0, nil
		}
		return 0, fmt.Errorf("forgotten: %w", err)
	}
	s := h.begin(hold, kind, 0)
	work()
	h.finish(s, hold)
	sections++
	if kind == writes && rand.N(8) == 0 {
		if err := hold.Downgrade(context.Background()); err != nil {
			return 0, errors.Join(err, hold.Unlock(context.Background()))
		}
		// Nobody may have written since.
		if s != nil {
			s = h.begin(hold, reads, s.end)
		}
		work()
		h.finish(s, hold)
		sections++
	}
	return sections, hold.Unlock(context.Background())
}

// work takes a while, sometimes.
func work() {
	if rand.N(4) == 0 {
		<-time.After(rand.N(2 * time.Millisecond))
	}
}

// fleet is 8 processes that read and write under locks of these names, in turn.
type fleet struct {
	paths  []string
	killed map[string]time.Time
	lost   atomic.Int64 // replies
}

// run has them do it so many times, while connections are killed twice a second, processes every few seconds,
// and replies are lost.
func (f *fleet) run(t *testing.T, s *redistest.Server, goal int64, names ...string) {
	proxy := redistest.NewLossyProxy(t, s, &f.lost)
	dir := t.TempDir()
	counter := filepath.Join(dir, "counter")
	counts, err := shared.Open(counter, 64*(1+processes))
	require.NoError(t, err)
	done := counts.Word(0)
	workers, at := make([]*redistest.Worker, processes), make([]string, processes)
	start := func(i int) {
		at[i] = filepath.Join(dir, fmt.Sprint(len(f.paths)))
		f.paths = append(f.paths, at[i])
		workers[i] = redistest.StartWorker(t, fmt.Sprintf("history %s 1s %s %s %s %d %d",
			proxy.Addr, names[i%len(names)], at[i], counter, 1+i, goal))
	}
	for i := range workers {
		start(i)
	}
	f.killed = map[string]time.Time{}
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for n := 1; done.Load() < goal; n++ {
		<-ticker.C
		kind := []string{"pubsub", "normal"}[n%2]
		s.KillClients(t, kind)
		if n%4 == 0 {
			i := rand.N(processes)
			for tries := 0; counts.Word(1+i).Load() == 0 && tries < 100_000; tries++ {
				i = (i + 1) % processes // one that is inside, if there is one
			}
			f.killed[at[i]] = time.Now()
			workers[i].Kill()
			start(i)
		}
	}
	for _, w := range workers {
		w.Next(t, "finished") // nobody was forgotten
	}
}

// 8 processes read and write under one lock while connections and processes are killed, and replies are lost.
// Judged from what they wrote down, nobody ever wrote beside anybody, and the tokens have their order.
// Rule 32.
func TestHistory(t *testing.T) {
	s := redistest.NewProcess(t, "--maxclients", "1000")
	goal := redistest.Rounds(10_000, 200_000)
	var f fleet
	began := time.Now()
	f.run(t, s, goal, "a")
	v := judgeFiles(t, f.paths, f.killed)
	t.Logf("%+v in %v, %d processes killed, %d replies lost", v, time.Since(began).Round(time.Second), len(f.killed), f.lost.Load())
	require.Zero(t, v.overlaps, "exclusion")
	require.Zero(t, v.disorder, "order of tokens")
	require.GreaterOrEqual(t, int64(v.reads+v.writes), goal)
	require.GreaterOrEqual(t, v.unfinished, len(f.killed)/10, "some were killed inside")
	require.Greater(t, v.together, 8, "readers of many processes read together")
	require.Positive(t, f.lost.Load())
	newcomer := take(t, newLock(t, open(t, s)).Write()) // the lock is free, and the killed ones hold nothing
	unlock(t, newcomer)
	redistest.OnlyExpiring(t, s.Client(t))
}

// The check above fails when processes do not exclude each other: here every other one has another lock.
func TestHistoryOfABrokenLock(t *testing.T) {
	var f fleet
	f.run(t, redistest.NewProcess(t), 2_000, "a", "b")
	v := judgeFiles(t, f.paths, f.killed)
	require.Positive(t, v.overlaps)
	require.Positive(t, v.disorder)
}
