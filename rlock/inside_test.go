package rlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// BenchmarkInside is 64 goroutines of one process on one key, compared with one goroutine's two scripts that
// do nothing.
func BenchmarkInside(b *testing.B) {
	redistest.Require(b)
	s := redistest.NewProcess(b)
	l, err := rlock.New(open(b, s), "inside")
	require.NoError(b, err)
	plain := s.Client(b)
	floor := redistest.Floor(s.Client(b))
	const round, goroutines = 500, 64
	ctx := context.Background()
	var nothing, ours time.Duration
	var pairs, sent int64
	var longest atomic.Int64
	for b.Loop() {
		start := time.Now()
		for range round {
			require.NoError(b, floor(0))
		}
		nothing += time.Since(start)
		before := redistest.Scripts(b, plain)
		start = time.Now()
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range round {
					began := time.Now()
					h, err := l.Lock(ctx)
					if err != nil {
						b.Error(err)
						return
					}
					for waited := int64(time.Since(began)); ; {
						most := longest.Load()
						if waited <= most || longest.CompareAndSwap(most, waited) {
							break
						}
					}
					if err := h.Unlock(ctx); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		ours += time.Since(start)
		sent += redistest.Scripts(b, plain) - before
		pairs += round * goroutines
	}
	perPair := float64(ours.Nanoseconds()) / float64(pairs)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(perPair, "ns/pair")
	b.ReportMetric(float64(nothing.Nanoseconds())/float64(int64(b.N)*round)/perPair, "of-floor")
	b.ReportMetric(float64(longest.Load())/1e6, "longest-ms")
	b.ReportMetric(float64(sent)/ours.Seconds(), "commands/s")
}
