package semaphore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/internal/test/redistest/shared"
	"github.com/latchkey-go/latchkey/semaphore"
)

// A history is a file of visits that a process writes through shared memory, so that it is complete to the
// moment when the process is killed. All times are in ns since the epoch: the processes share a clock.
//
//	begin   Acquire has returned
//	end     the permits were held until then at least; 0: it has not come to that
//	permits
const visitSize = 3 * 8

func openHistory(path string, visits int) ([]byte, error) { return shared.Open(path, visits*visitSize) }

// most is how many visits a process has room for.
const most = 300_000

// record is the worker: goroutines that acquire and release until a time. What it writes down is what it
// may trust.
func record(c *latchkey.Client, s *semaphore.Semaphore, args []string) {
	history, err := openHistory(args[0], most)
	check(err)
	pairs, err := openHistory(args[1], 1) // that all processes count together
	check(err)
	goal, err := strconv.ParseInt(args[2], 10, 64)
	check(err)
	counted := counter(pairs)
	var visits atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for counted.Load() < goal {
				n := 1 + rand.N(5)
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				if rand.N(50) == 0 { // some give up
					ctx, cancel = context.WithTimeout(context.Background(), rand.N(10*time.Millisecond))
				}
				began := time.Now()
				p, err := s.Acquire(ctx, n)
				cancel()
				if err != nil {
					if time.Since(began) > 20*time.Second {
						fmt.Println("error forgotten:", err)
					}
					continue
				}
				visit := history[(visits.Add(1)-1)*visitSize:]
				binary.NativeEndian.PutUint64(visit[16:], uint64(n))
				binary.NativeEndian.PutUint64(visit, uint64(time.Now().UnixNano()))
				if rand.N(10) == 0 {
					<-time.After(rand.N(2 * time.Millisecond))
				}
				// A visit lasts until the last moment at which it was trusted.
				if now := time.Now(); p.Held() {
					binary.NativeEndian.PutUint64(visit[8:], uint64(now.UnixNano()))
				} else {
					copy(visit[8:16], visit[:8])
				}
				if err := p.Release(context.Background()); err == nil {
					counted.Add(1)
				} else if !errors.Is(err, latchkey.ErrLost) && !errors.Is(err, latchkey.ErrUnknownOutcome) {
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

// mostHeld returns how many permits were held at the worst moment, and how many visits there were. killed
// is when the process of a history ended before its time.
func mostHeld(t testing.TB, paths []string, killed map[string]time.Time) (worst, visits int) {
	t.Helper()
	type event struct {
		at int64
		n  int
	}
	var events []event
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for ; len(text) >= visitSize; text = text[visitSize:] {
			begin, end := int64(binary.NativeEndian.Uint64(text)), int64(binary.NativeEndian.Uint64(text[8:]))
			if begin == 0 {
				continue
			}
			if end == 0 {
				require.Contains(t, killed, path, "a visit without an end")
				end = killed[path].UnixNano()
			}
			n := int(binary.NativeEndian.Uint64(text[16:]))
			visits++
			events = append(events, event{begin, n}, event{end, -n})
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.n - b.n // ends first: the clock has no finer steps
	})
	held := 0
	for _, e := range events {
		held += e.n
		worst = max(worst, held)
	}
	return worst, visits
}

// 8 processes, of which half pass permits on inside, take 1 to 5 of 12 permits while connections are killed
// every second and a process every three. Judged from what they wrote down, there never were more;
// afterwards all are free.
func TestHistory(t *testing.T) {
	s := redistest.NewProcess(t, "--maxclients", "1000")
	plain := s.Client(t)
	const capacity = 12
	sem := newSemaphore(t, open(t, s.Option()), semaphore.WithCapacity(capacity))
	numbers(t, sem, capacity, 0)
	goal := redistest.Rounds(25_000, 200_000)
	dir := t.TempDir()
	pairs := filepath.Join(dir, "pairs")
	memory, err := openHistory(pairs, 1)
	require.NoError(t, err)
	counted := counter(memory)
	var paths []string
	run := func() *redistest.Worker {
		path := filepath.Join(dir, fmt.Sprint(len(paths)))
		paths = append(paths, path)
		way := []string{"budget", "none"}[len(paths)/4%2]
		return redistest.StartWorker(t, fmt.Sprintf("history %s 1s %s %s %d %s", s.Addr, path, pairs, goal, way))
	}
	began := time.Now()
	workers, at := make([]*redistest.Worker, 8), make([]string, 8)
	for i := range workers {
		workers[i] = run()
		at[i] = paths[i]
	}
	killed := map[string]time.Time{}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for n := 1; counted.Load() < goal; n++ {
		<-ticker.C
		kind := []string{"pubsub", "normal"}[n%2]
		require.NoError(t, plain.Do(t.Context(), plain.B().Arbitrary("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").Build()).Error())
		if i := rand.N(len(workers)); n%3 == 0 && counted.Load() < goal {
			now := time.Now()
			workers[i].Kill()
			killed[at[i]] = now
			workers[i] = run()
			at[i] = paths[len(paths)-1]
		}
	}
	for _, w := range workers {
		w.Next(t, "finished")
	}
	worst, visits := mostHeld(t, paths, killed)
	t.Logf("%d pairs (%d visits) in %v, %d processes killed; at most %d of %d permits were held",
		counted.Load(), visits, time.Since(began).Round(time.Second), len(killed), worst, capacity)
	require.LessOrEqual(t, worst, capacity)
	require.Greater(t, worst, capacity-5, "requests of five had to wait")
	require.GreaterOrEqual(t, int64(visits), goal)
	require.Eventually(t, func() bool {
		n, err := sem.Available(t.Context())
		return err == nil && n == capacity
	}, long, 10*time.Millisecond)
	require.NoError(t, acquire(t, sem, capacity).Release(t.Context())) // takes back what the killed ones held
	clean(t, plain, "a", fmt.Sprint(capacity))
}

// counter is the first word of shared memory.
func counter(memory []byte) *atomic.Int64 { return (*atomic.Int64)(unsafe.Pointer(&memory[0])) }
