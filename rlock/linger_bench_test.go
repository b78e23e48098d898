package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// BenchmarkLinger is one goroutine that locks and unlocks, with a lock that lingers and with one that does
// not.
func BenchmarkLinger(b *testing.B) {
	redistest.Require(b)
	s := redistest.NewProcess(b)
	ctx := context.Background()
	pairs := func(name string, options ...rlock.Option) redistest.Way {
		l, err := rlock.New(open(b, s), name, options...)
		require.NoError(b, err)
		return func(int) error {
			h, err := l.Lock(ctx)
			if err != nil {
				return err
			}
			return h.Unlock(ctx)
		}
	}
	m := redistest.Compare(b, 1, 2000, pairs("lingers", rlock.WithLinger(time.Second)), pairs("does not"))
	b.ReportMetric(1e9/m[0].Nanoseconds, "lingering-pairs/s")
	b.ReportMetric(1e9/m[1].Nanoseconds, "plain-pairs/s")
	b.ReportMetric(m[0].Allocations, "lingering-allocs/pair")
	b.ReportMetric(m[1].Allocations, "plain-allocs/pair")
}
