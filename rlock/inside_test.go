package rlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// BenchmarkInside is 64 goroutines of one process on one key, with nothing inside. It is compared with one
// goroutine's two scripts that do nothing, and with what the same goroutines pay where there is no Redis: a
// semaphore of one that knows contexts and serves who came first. The rounds of all are interleaved. In each
// all goroutines wait from the beginning: those of a semaphore that finds nobody waiting would run one after
// the other, and pass on nothing.
func BenchmarkInside(b *testing.B) {
	for _, kind := range []string{"background", "cancellable"} {
		b.Run(kind, func(b *testing.B) {
			ctx := context.Background()
			if kind == "cancellable" {
				ctx = b.Context()
			}
			benchmarkInside(ctx, b)
		})
	}
}

func benchmarkInside(ctx context.Context, b *testing.B) {
	redistest.Require(b)
	s := redistest.NewProcess(b)
	l, err := rlock.New(open(b, s), "inside")
	require.NoError(b, err)
	require.NoError(b, lockUnlock(ctx, l)) // the server learns the scripts
	plain := s.Client(b)
	nothing := redistest.Floor(s.Client(b))
	const times, goroutines = 1000, 64
	var longest atomic.Int64
	lock := func(int) error {
		began := time.Now()
		h, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		for waited := int64(time.Since(began)); ; {
			most := longest.Load()
			if waited <= most || longest.CompareAndSwap(most, waited) {
				break
			}
		}
		return h.Unlock(ctx)
	}
	weighted := semaphore.NewWeighted(1)
	local := func(int) error {
		if err := weighted.Acquire(ctx, 1); err != nil {
			return err
		}
		weighted.Release(1)
		return nil
	}
	var alone, inside, ours []redistest.Measure
	var sent int64
	for b.Loop() {
		alone = append(alone, redistest.Round(b, 1, times, nothing))
		require.NoError(b, weighted.Acquire(ctx, 1))
		inside = append(inside, redistest.Round(b, goroutines, times, together(goroutines, local, func() error {
			weighted.Release(1)
			return nil
		})))
		before := redistest.Scripts(b, plain)
		h, err := l.Lock(ctx)
		require.NoError(b, err)
		ours = append(ours, redistest.Round(b, goroutines, times, together(goroutines, lock, func() error { return h.Unlock(ctx) })))
		sent += redistest.Scripts(b, plain) - before
	}
	floor, least, pair := redistest.Median(alone), redistest.Median(inside), redistest.Median(ours)
	b.ReportMetric(0, "ns/op") // of a round
	b.ReportMetric(pair.Nanoseconds, "ns/pair")
	b.ReportMetric(pair.Allocations, "allocs/pair")
	b.ReportMetric(pair.Bytes, "B/pair")
	b.ReportMetric(floor.Nanoseconds/pair.Nanoseconds, "of-floor")
	b.ReportMetric(least.Nanoseconds, "weighted-ns/pair")
	b.ReportMetric(least.Allocations, "weighted-allocs/pair")
	b.ReportMetric(least.Bytes, "weighted-B/pair")
	b.ReportMetric(least.Nanoseconds/pair.Nanoseconds, "of-weighted")
	b.ReportMetric(float64(longest.Load())/1e6, "longest-ms")
	b.ReportMetric(float64(sent)/float64(len(ours)*times*goroutines), "commands/pair")
}

// together is a way that frees what they wait for when the last goroutine has come.
func together(goroutines int, way redistest.Way, free func() error) redistest.Way {
	var came atomic.Int64
	here := make([]bool, goroutines) // each has its own
	return func(g int) error {
		if !here[g] {
			here[g] = true
			if came.Add(1) == int64(goroutines) {
				if err := free(); err != nil {
					return err
				}
			}
		}
		return way(g)
	}
}
