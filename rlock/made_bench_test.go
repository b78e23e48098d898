package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

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
