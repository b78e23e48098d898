package multilock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/contract"
	"github.com/latchkey-go/latchkey/internal/locktest"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/redistest/shared"
	"github.com/latchkey-go/latchkey/multilock"
)

const (
	processes  = 8
	goroutines = 4 // of each
	several    = 10
	most       = 200_000 // sections of a process
)

// section is the time in which a process has trusted its hold of one lock. Times are in ns since the epoch:
// the processes share a clock. A process writes it to memory that outlives it.
type section struct {
	begin int64 // 0: there is none
	end   int64 // 0: it has not come to that
	until int64 // the end of the lease as it was known at the beginning
	token int64
	lock  int64
	reads int64 // 1: beside others that read
}

func sectionsOf(path string) ([]section, error) {
	memory, err := shared.Open(path, most*int(unsafe.Sizeof(section{})))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*section)(unsafe.Pointer(&memory[0])), most), nil
}

// worker takes random locks in random orders until all processes together have done it so many times. Its
// words: the server, a file for its sections, the file of the count, the goal, and whether it has locks of
// its own, as a broken lock would.
func worker(args []string) {
	c := locktest.Connected(args[0], latchkey.WithLease(time.Second))
	sections, err := sectionsOf(args[1])
	check(err)
	counter, err := shared.Open(args[2], 64)
	check(err)
	goal, err := strconv.ParseInt(args[3], 10, 64)
	check(err)
	var all []choice
	for n, name := range names(args[4], several) {
		all = append(all, choiceOf(c, n, name))
	}
	done, used := counter.Word(0), new(atomic.Int64)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for done.Load() < goal {
				err := visit(all, sections, used, len(args[4]))
				switch {
				case err == nil:
					done.Add(1)
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

// choice is a lock that may be taken, or the two halves of one.
type choice struct{ alone, reads *latchkey.Lock }

// choiceOf returns the lock with that number. There are locks of all kinds.
func choiceOf(c *latchkey.Client, n int, name string) (l choice) {
	kind := []contract.Kind{
		contract.Lingering(time.Second), contract.EveryKind["fairlock"], contract.EveryKind["spinlock"],
		contract.EveryKind["write"], contract.EveryKind["write"],
	}[n%5]
	var err error
	l.alone, err = kind(c, name, 0)
	check(err)
	if n%5 > 2 {
		l.reads, err = contract.EveryKind["read"](c, name, 0)
		check(err)
	}
	return l
}

// holding is a hold of one lock, or of several.
type holding interface {
	Remaining() time.Duration
	Held() bool
	Unlock(ctx context.Context) error
}

// waitFor waits for some of the locks. One alone is taken by itself: then it lingers, where others may want
// it together with more.
func waitFor(ctx context.Context, some []*latchkey.Lock) (_ holding, tokens map[string]int64, err error) {
	if len(some) == 1 {
		hold, err := some[0].Lock(ctx)
		if err != nil {
			return nil, nil, err
		}
		return hold, map[string]int64{some[0].Name(): hold.Token()}, nil
	}
	l, err := multilock.New(some...)
	check(err)
	hold, err := l.Lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	return hold, hold.Tokens(), nil
}

// visit holds some of the locks for a moment.
func visit(all []choice, sections []section, used *atomic.Int64, prefix int) error {
	const patience = 30 * time.Second
	var some []*latchkey.Lock
	reads := map[string]int64{}
	for _, i := range rand.Perm(several)[:1+rand.IntN(5)] {
		if all[i].reads != nil && rand.N(2) == 0 {
			some = append(some, all[i].reads)
			reads[all[i].reads.Name()] = 1
		} else {
			some = append(some, all[i].alone)
		}
	}
	limit := patience
	if rand.N(20) == 0 { // some give up
		limit = rand.N(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	hold, tokens, err := waitFor(ctx, some)
	cancel()
	if err != nil {
		if limit < patience {
			return nil
		}
		return fmt.Errorf("forgotten: %w", err)
	}
	now := time.Now()
	left := hold.Remaining()
	if left <= 0 {
		return hold.Unlock(context.Background())
	}
	var mine []*section
	for name, token := range tokens {
		number, err := strconv.ParseInt(name[prefix:], 10, 64)
		check(err)
		s := &sections[used.Add(1)-1]
		s.lock, s.token, s.reads, s.until = number, token, reads[name], now.Add(left).UnixNano()
		atomic.StoreInt64(&s.begin, now.UnixNano()) // last: the process may be killed between any two of these
		mine = append(mine, s)
	}
	if rand.N(4) == 0 {
		<-time.After(rand.N(2 * time.Millisecond))
	}
	end := time.Now().UnixNano()
	if !hold.Held() {
		end = now.UnixNano() + 1
	}
	for _, s := range mine {
		atomic.StoreInt64(&s.end, end)
	}
	return hold.Unlock(context.Background())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// fleet is what became of the processes.
type fleet struct {
	overlaps, disorder, sections, read, unfinished, killed int
	lost                                                   atomic.Int64 // replies
}

// run has 8 processes take locks so many times, while connections are killed twice a second, processes every
// two seconds, and replies are lost. Of the prefixes of names each process has one, in turn.
func (f *fleet) run(t *testing.T, s *redistest.Server, goal int64, prefixes ...string) {
	proxy, dir := redistest.NewLossyProxy(t, s, &f.lost), t.TempDir()
	counter := filepath.Join(dir, "counter")
	counts, err := shared.Open(counter, 64)
	require.NoError(t, err)
	var paths []string
	killed, workers, at := map[string]int64{}, make([]*redistest.Worker, processes), make([]string, processes)
	start := func(i int) {
		at[i] = filepath.Join(dir, fmt.Sprint(len(paths)))
		paths = append(paths, at[i])
		workers[i] = redistest.StartWorker(t, fmt.Sprintf("%s %s %s %d %s", proxy.Addr, at[i], counter, goal, prefixes[i%len(prefixes)]))
	}
	for i := range workers {
		start(i)
	}
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	began, done := time.Now(), counts.Word(0)
	for n := 1; done.Load() < goal; n++ {
		<-ticker.C
		kind := []string{"pubsub", "normal"}[n%2]
		s.KillClients(t, kind)
		if n%4 == 0 {
			i := rand.N(processes)
			killed[at[i]] = time.Now().UnixNano()
			workers[i].Kill()
			start(i)
		}
	}
	for _, w := range workers {
		w.Next(t, "finished") // nobody was forgotten
	}
	f.killed = len(killed)
	f.judge(t, paths, killed)
	t.Logf("%d holds of locks, %d of which read, in %v, %d unfinished, %d processes killed, %d replies lost; %d overlaps, %d tokens out of order",
		f.sections, f.read, time.Since(began).Round(time.Second), f.unfinished, f.killed, f.lost.Load(), f.overlaps, f.disorder)
}

// judge looks at what the processes wrote down. The sections of one that was killed go on until then, as long
// as it could trust them.
func (f *fleet) judge(t *testing.T, paths []string, killed map[string]int64) {
	var all []section
	for _, path := range paths {
		sections, err := sectionsOf(path)
		require.NoError(t, err)
		for _, s := range sections {
			if s.begin == 0 {
				continue
			}
			if s.end == 0 {
				require.Contains(t, killed, path, "a section without an end")
				s.end = max(min(killed[path], s.until), s.begin)
				f.unfinished++
			}
			all = append(all, s)
		}
	}
	f.sections = len(all)
	slices.SortFunc(all, func(a, b section) int {
		return cmp.Or(cmp.Compare(a.lock, b.lock), cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	var last, lastAlone section // the latest end and the greatest token of the lock, of all and of those alone
	for i, s := range all {
		if i == 0 || all[i-1].lock != s.lock {
			last, lastAlone = section{}, section{}
		}
		if s.begin < lastAlone.end || s.reads == 0 && s.begin < last.end {
			f.overlaps++
		}
		if s.token < last.token || s.reads == 0 && s.token == last.token {
			f.disorder++
		}
		f.read += int(s.reads)
		last.end, last.token = max(last.end, s.end), max(last.token, s.token)
		if s.reads == 0 {
			lastAlone.end = max(lastAlone.end, s.end)
		}
	}
}

// Processes take random locks of all kinds in random orders while connections and processes are killed, and
// replies are lost. Nobody waits for ever, nobody holds what another one holds, and nothing is left behind.
// Rule 35.
func TestHistory(t *testing.T) {
	s := redistest.NewProcess(t, "--maxclients", "1000")
	goal := redistest.Rounds(4_000, 60_000)
	var f fleet
	f.run(t, s, goal, "l")
	require.Zero(t, f.overlaps, "exclusion")
	require.Zero(t, f.disorder, "order of tokens")
	require.GreaterOrEqual(t, int64(f.sections), goal)
	require.Positive(t, f.lost.Load())
	require.Positive(t, f.read)
	c := open(t, s)
	for n, name := range names("l", several) {
		free(t, choiceOf(c, n, name).alone) // the killed ones hold nothing
	}
	redistest.OnlyExpiring(t, s.Client(t))
}

// The check above fails when processes do not exclude each other: here every other one has other locks.
// Rule 35.
func TestHistoryOfABrokenLock(t *testing.T) {
	var f fleet
	f.run(t, redistest.NewProcess(t), 1_000, "a", "b")
	require.Positive(t, f.overlaps)
	require.Positive(t, f.disorder)
}
