package rlock_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/locktest"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

var open = locktest.ClientOf

// raw returns our two scripts sent as they are, by each goroutine for a key of its own.
func raw(tb testing.TB, s *redistest.Server, goroutines int) redistest.Way {
	tb.Helper()
	keys := make([]*lua.Keys, goroutines)
	for i := range keys {
		var err error
		keys[i], err = lua.NewKeys(lua.Locks, fmt.Sprint("raw", i), false)
		require.NoError(tb, err)
	}
	conn, ctx := lua.Conn{Client: s.Client(tb)}, context.Background()
	var n atomic.Uint64
	return func(i int) error {
		owner := lua.Owner("RAW", n.Add(1))
		if _, err := conn.Acquire(ctx, keys[i], lua.Claim{Owner: owner, Lease: 10_000, Longest: 1000}, 0, lua.First); err != nil {
			return err
		}
		_, err := conn.Release(ctx, keys[i], lua.Ending{Owner: owner}, 0)
		return err
	}
}

func lockUnlock(ctx context.Context, l *latchkey.Lock) error {
	h, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	return h.Unlock(ctx)
}

// BenchmarkPair is one goroutine and one key: a Lock and an Unlock, interleaved with its floors, which must
// be read in the same run. The ratios are medians over the rounds.
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
			m := redistest.Compare(b, 1, 500, redistest.Floor(s.Client(b)), raw(b, s, 1), func(int) error { return lockUnlock(ctx, l) })
			b.ReportMetric(m[2].Nanoseconds, "ns/pair")
			b.ReportMetric(m[0].Nanoseconds/m[2].Nanoseconds, "of-floor")
			b.ReportMetric(m[1].Nanoseconds/m[2].Nanoseconds, "of-raw")
			b.ReportMetric(m[2].Allocations, "allocs/pair")
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

// BenchmarkContended hands one lock around among many waiters and reports the commands for each
// acquisition.
func BenchmarkContended(b *testing.B) {
	for _, clients := range []int{1, 8} {
		for _, waiters := range []int{1, 10, 100, 1000, 10_000} {
			for _, kind := range []string{"rlock", "fairlock"} {
				b.Run(fmt.Sprintf("%s/clients=%d/waiters=%d", kind, clients, waiters), func(b *testing.B) {
					redistest.Require(b)
					s := redistest.NewProcess(b)
					locks := make([]*latchkey.Lock, clients)
					for i := range locks {
						var err error
						locks[i], err = newLock(open(b, s), kind, "one")
						require.NoError(b, err)
					}
					for _, l := range locks { // the server learns the scripts
						require.NoError(b, lockUnlock(context.Background(), l))
					}
					redistest.Contend(b, s, max(waiters, clients), func(goroutine, _ int) error {
						return lockUnlock(context.Background(), locks[goroutine%clients])
					})
				})
			}
		}
	}
}

// BenchmarkKeys is 64 goroutines on a key each, compared with its floors, interleaved as in BenchmarkPair.
func BenchmarkKeys(b *testing.B) {
	redistest.Require(b)
	s := redistest.NewProcess(b)
	c := open(b, s)
	const goroutines = 64
	locks := make([]*rlock.Lock, goroutines)
	for i := range locks {
		var err error
		locks[i], err = rlock.New(c, fmt.Sprint("key", i))
		require.NoError(b, err)
	}
	ctx := context.Background()
	m := redistest.Compare(b, goroutines, 200, redistest.Floor(s.Client(b)), raw(b, s, goroutines), func(i int) error { return lockUnlock(ctx, locks[i]) })
	b.ReportMetric(1e9/m[2].Nanoseconds, "pairs/s")
	b.ReportMetric(m[0].Nanoseconds/m[2].Nanoseconds, "of-floor")
	b.ReportMetric(m[1].Nanoseconds/m[2].Nanoseconds, "of-raw")
}

// BenchmarkIdle is what waiters cost that only wait: memory of each, and commands a second of all.
func BenchmarkIdle(b *testing.B) {
	redistest.Require(b)
	const waiters = 1000
	for _, kind := range []string{"rlock", "fairlock"} {
		b.Run(kind, func(b *testing.B) {
			s := redistest.NewProcess(b)
			plain := s.Client(b)
			wanted, err := newLock(open(b, s), kind, "idle")
			require.NoError(b, err)
			other, err := newLock(open(b, s), kind, "idle")
			require.NoError(b, err)
			h, err := other.Lock(context.Background())
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
						if _, err := wanted.Lock(ctx); err == nil {
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
			sent := redistest.Scripts(b, plain)
			began := time.Now()
			<-time.After(10 * time.Second) // the measured span
			rate := float64(redistest.Scripts(b, plain)-sent) / time.Since(began).Seconds()
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
