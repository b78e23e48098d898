package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

func open(tb testing.TB, s *redistest.Server, opts ...latchkey.Option) *latchkey.Client {
	tb.Helper()
	c, err := latchkey.New(s.Option(), opts...)
	require.NoError(tb, err)
	tb.Cleanup(c.Close)
	require.NoError(tb, c.Check(context.Background()))
	return c
}

// pair is one way of locking and unlocking once.
type pair struct {
	name string
	run  func(ctx context.Context) error
}

// floors are the least that a pair can cost: two scripts that do nothing, and our two scripts sent as they are.
func floors(tb testing.TB, s *redistest.Server) []pair {
	nothing := rueidis.NewLuaScript("return 1")
	plain, raw := s.Client(tb), s.Client(tb)
	key, err := lua.NewKeys(lua.Locks, "raw", false)
	require.NoError(tb, err)
	conn, n := lua.Conn{Client: raw}, uint64(0)
	return []pair{
		{"floor", func(ctx context.Context) error {
			if err := nothing.Exec(ctx, plain, []string{"k"}, nil).Error(); err != nil {
				return err
			}
			return nothing.Exec(ctx, plain, []string{"k"}, nil).Error()
		}},
		{"raw scripts", func(ctx context.Context) error {
			n++
			owner := lua.Owner("RAW", n)
			if _, err := conn.Acquire(ctx, key, lua.Claim{Owner: owner, Lease: 10_000, Longest: 1000}, 0, lua.First); err != nil {
				return err
			}
			_, err := conn.Release(ctx, key, lua.Ending{Owner: owner}, 0)
			return err
		}},
	}
}

// BenchmarkPair is one goroutine and one key: a Lock and an Unlock, interleaved with its floors, which must be read in
// the same run. The ratios are medians over the rounds.
func BenchmarkPair(b *testing.B) {
	for _, kind := range []string{"background", "cancellable"} {
		b.Run(kind, func(b *testing.B) {
			s := redistest.New(b)
			l, err := rlock.New(open(b, s), "pair")
			require.NoError(b, err)
			ctx := context.Background()
			if kind == "cancellable" {
				ctx = b.Context()
			}
			pairs := append(floors(b, s), pair{"latchkey", func(ctx context.Context) error {
				h, err := l.Lock(ctx)
				if err != nil {
					return err
				}
				return h.Unlock(ctx)
			}})
			const round = 500
			times := make([][]float64, len(pairs))
			var before, after runtime.MemStats
			var allocs uint64
			rounds := 0
			for b.Loop() {
				rounds++
				for i, p := range pairs {
					runtime.ReadMemStats(&before)
					start := time.Now()
					for range round {
						require.NoError(b, p.run(ctx))
					}
					times[i] = append(times[i], float64(time.Since(start).Nanoseconds())/round)
					runtime.ReadMemStats(&after)
					if i == len(pairs)-1 {
						allocs += after.Mallocs - before.Mallocs
					}
				}
			}
			median := func(i int) float64 { slices.Sort(times[i]); return times[i][len(times[i])/2] }
			b.ReportMetric(0, "ns/op") // of a round; the metrics below are of pairs
			b.ReportMetric(median(2), "ns/pair")
			b.ReportMetric(median(0)/median(2), "of-floor")
			b.ReportMetric(median(1)/median(2), "of-raw")
			b.ReportMetric(float64(allocs)/float64(rounds*round), "allocs/pair")
		})
	}
}

// field returns a number of INFO.
func field(tb testing.TB, info, name string) (value float64) {
	tb.Helper()
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			_, err := fmt.Sscan(text, &value)
			require.NoError(tb, err)
		}
	}
	return value
}

// commands returns how many scripts the server has run.
func commands(tb testing.TB, c rueidis.Client) int64 {
	tb.Helper()
	info, err := c.Do(context.Background(), c.B().Info().Section("commandstats").Build()).ToString()
	require.NoError(tb, err)
	var total int64
	for _, name := range []string{"evalsha", "eval"} {
		if i := strings.Index(info, "cmdstat_"+name+":calls="); i >= 0 {
			var n int64
			_, err := fmt.Sscanf(info[i:], "cmdstat_"+name+":calls=%d", &n)
			require.NoError(tb, err)
			total += n
		}
	}
	return total
}

// BenchmarkContended hands one lock around among many waiters and reports the commands for each acquisition.
func BenchmarkContended(b *testing.B) {
	for _, clients := range []int{1, 8} {
		for _, waiters := range []int{1, 10, 100, 1000, 10_000} {
			for _, kind := range []string{"rlock", "fairlock"} {
				b.Run(fmt.Sprintf("%s/clients=%d/waiters=%d", kind, clients, waiters), func(b *testing.B) {
					redistest.Require(b)
					s := redistest.NewProcess(b)
					locks := make([]locker, clients)
					for i := range locks {
						var err error
						locks[i], err = newLocker(open(b, s), kind, "one")
						require.NoError(b, err)
					}
					plain := s.Client(b)
					for _, l := range locks { // the server learns the scripts
						h, err := l.Lock(context.Background())
						require.NoError(b, err)
						require.NoError(b, h.Unlock(context.Background()))
					}
					before := commands(b, plain)
					var left, done atomic.Int64
					left.Store(int64(b.N))
					b.ResetTimer()
					var wg sync.WaitGroup
					for i := range max(waiters, clients) {
						wg.Go(func() {
							for left.Add(-1) >= 0 {
								h, err := locks[i%clients].Lock(context.Background())
								if err != nil {
									b.Error(err)
									return
								}
								done.Add(1)
								if err := h.Unlock(context.Background()); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					wg.Wait()
					b.StopTimer()
					b.ReportMetric(float64(commands(b, plain)-before)/float64(done.Load()), "commands/acquisition")
				})
			}
		}
	}
}

// BenchmarkKeys is 64 goroutines on a key each, beside its floors, interleaved as in BenchmarkPair.
func BenchmarkKeys(b *testing.B) {
	redistest.Require(b)
	s := redistest.NewProcess(b)
	c := open(b, s)
	const goroutines, round = 64, 200
	raw := lua.Conn{Client: s.Client(b)}
	nothing, plain := rueidis.NewLuaScript("return 1"), s.Client(b)
	ctx := context.Background()
	var n atomic.Uint64
	ways := []func(i int) error{
		func(int) error {
			return errors.Join(nothing.Exec(ctx, plain, []string{"k"}, nil).Error(), nothing.Exec(ctx, plain, []string{"k"}, nil).Error())
		},
		nil, nil,
	}
	keys, locks := make([]*lua.Keys, goroutines), make([]*rlock.Lock, goroutines)
	for i := range goroutines {
		var err error
		keys[i], err = lua.NewKeys(lua.Locks, fmt.Sprint("raw", i), false)
		require.NoError(b, err)
		locks[i], err = rlock.New(c, fmt.Sprint("key", i))
		require.NoError(b, err)
	}
	ways[1] = func(i int) error {
		owner := lua.Owner("RAW", n.Add(1))
		_, err := raw.Acquire(ctx, keys[i], lua.Claim{Owner: owner, Lease: 10_000, Longest: 1000}, 0, lua.First)
		if err != nil {
			return err
		}
		_, err = raw.Release(ctx, keys[i], lua.Ending{Owner: owner}, 0)
		return err
	}
	ways[2] = func(i int) error {
		h, err := locks[i].Lock(ctx)
		if err != nil {
			return err
		}
		return h.Unlock(ctx)
	}
	times := make([][]float64, len(ways))
	for b.Loop() {
		for w, way := range ways {
			start := time.Now()
			var wg sync.WaitGroup
			for i := range goroutines {
				wg.Go(func() {
					for range round {
						if err := way(i); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			times[w] = append(times[w], time.Since(start).Seconds()/(goroutines*round))
		}
	}
	median := func(w int) float64 { slices.Sort(times[w]); return times[w][len(times[w])/2] }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1/median(2), "pairs/s")
	b.ReportMetric(median(0)/median(2), "of-floor")
	b.ReportMetric(median(1)/median(2), "of-raw")
}

// BenchmarkIdle is what waiters cost that only wait: memory of each, and commands a second of all.
func BenchmarkIdle(b *testing.B) {
	redistest.Require(b)
	const waiters = 1000
	for kind, lock := range map[string]func(c *latchkey.Client) func(context.Context) (*latchkey.Hold, error){
		"rlock": func(c *latchkey.Client) func(context.Context) (*latchkey.Hold, error) {
			l, err := rlock.New(c, "idle")
			require.NoError(b, err)
			return l.Lock
		},
		"fairlock": func(c *latchkey.Client) func(context.Context) (*latchkey.Hold, error) {
			l, err := fairlock.New(c, "idle")
			require.NoError(b, err)
			return l.Lock
		},
	} {
		b.Run(kind, func(b *testing.B) {
			s := redistest.NewProcess(b)
			plain := s.Client(b)
			wait := lock(open(b, s))
			h, err := lock(open(b, s))(context.Background())
			require.NoError(b, err)
			ctx, cancel := context.WithCancel(context.Background())
			inUse := func() runtime.MemStats {
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m
			}
			var wg sync.WaitGroup
			var waiting int64
			var started atomic.Int64
			join := func(n int64) { // n more waiters, all of them asleep
				waiting += n
				for range n {
					wg.Go(func() {
						started.Add(1)
						if _, err := wait(ctx); err == nil {
							b.Error("a waiter got the lock")
						}
					})
				}
				depth := int64(1)
				if kind == "fairlock" {
					depth = waiting
				}
				require.Eventually(b, func() bool {
					n, err := plain.Do(ctx, plain.B().Llen().Key("latchkey_queue:{idle}").Build()).AsInt64()
					return err == nil && n == depth && started.Load() == waiting
				}, 20*time.Second, 5*time.Millisecond)
			}
			// The first waiters make the buffers and goroutines of the connections, which are not theirs.
			join(100)
			before := inUse()
			join(waiters)
			after := inUse()
			stack := float64(after.StackInuse-before.StackInuse) / waiters
			heap := float64(int64(after.HeapInuse)-int64(before.HeapInuse)) / waiters
			sent := commands(b, plain)
			began := time.Now()
			<-time.After(10 * time.Second) // the measured span
			rate := float64(commands(b, plain)-sent) / time.Since(began).Seconds()
			for b.Loop() { // what is measured is above
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(stack+heap, "B/waiter")
			b.ReportMetric(stack, "stack-B/waiter")
			b.ReportMetric(heap, "heap-B/waiter")
			b.ReportMetric(rate, "commands/s")
			cancel()
			wg.Wait()
			require.NoError(b, h.Unlock(context.Background()))
		})
	}
}
