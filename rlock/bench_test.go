package rlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/test/locktest"
	"github.com/latchkey-go/latchkey/internal/test/redistest"
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
