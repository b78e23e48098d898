package rlock_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// crowd has all goroutines of a round stand in line before the first one goes on. From then on the line is
// never empty. Otherwise a scheduler with one free processor runs them one after the other, and none waits.
type crowd struct {
	size, times int
	calls       []int
	arrived     atomic.Int64
}

func newCrowd(size, times int) *crowd {
	return &crowd{size: size, times: times, calls: make([]int, size)}
}

// comes is called by a goroutine that is about to lock, and stays by one that holds.
func (c *crowd) comes(goroutine int) {
	if c.calls[goroutine]%c.times == 0 {
		c.arrived.Add(1)
	}
	c.calls[goroutine]++
}

func (c *crowd) stays() {
	for c.arrived.Load()%int64(c.size) != 0 {
		runtime.Gosched()
	}
}

// BenchmarkLocal is 64 goroutines of one process on one key, with nothing to do while they hold it. It is
// compared with a semaphore that knows of no other process, interleaved as in BenchmarkPair.
func BenchmarkLocal(b *testing.B) {
	const goroutines, times = 64, 1000
	s := redistest.New(b)
	l, err := rlock.New(open(b, s), "local")
	require.NoError(b, err)
	ctx, plain := context.Background(), semaphore.NewWeighted(1)
	first, second := newCrowd(goroutines, times), newCrowd(goroutines, times)
	m := redistest.Compare(b, goroutines, times, func(i int) error {
		first.comes(i)
		if err := plain.Acquire(ctx, 1); err != nil {
			return err
		}
		first.stays()
		plain.Release(1)
		return nil
	}, func(i int) error {
		second.comes(i)
		h, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		second.stays()
		return h.Unlock(ctx)
	})
	b.ReportMetric(m[1].Nanoseconds, "ns/pair")
	b.ReportMetric(m[0].Nanoseconds/m[1].Nanoseconds, "of-semaphore")
	b.ReportMetric(m[1].Allocations, "allocs/pair")
	b.ReportMetric(m[1].Bytes, "B/pair")
}

// BenchmarkMade is a pair of one goroutine with a lock that is made for it, compared with a kept one.
func BenchmarkMade(b *testing.B) {
	s := redistest.New(b)
	c, ctx := open(b, s), context.Background()
	kept, err := rlock.New(c, "kept")
	require.NoError(b, err)
	made := func(int) error {
		l, err := rlock.New(c, "made")
		if err != nil {
			return err
		}
		return lockUnlock(ctx, l)
	}
	m := redistest.Compare(b, 1, 500, func(int) error { return lockUnlock(ctx, kept) }, made)
	b.ReportMetric(m[1].Nanoseconds, "ns/pair")
	b.ReportMetric(m[0].Nanoseconds/m[1].Nanoseconds, "of-kept")
	b.ReportMetric(m[0].Allocations, "kept-allocs/pair")
	b.ReportMetric(m[1].Allocations, "allocs/pair")
	b.ReportMetric(m[0].Bytes, "kept-B/pair")
	b.ReportMetric(m[1].Bytes, "B/pair")
}
