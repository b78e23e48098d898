package rlock_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// BenchmarkLingerFloor is a lock that stays with its process, compared with the two scripts that do nothing
// and with a lock that does not stay, in the same run: one goroutine on one key, 64 on a key each, and two
// clients by turns, of which each asks when the other has unlocked. The last is what lingering costs where it
// is of no use.
func BenchmarkLingerFloor(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		b.Run(fmt.Sprint("alone/goroutines=", goroutines), func(b *testing.B) {
			compareLinger(b, goroutines, 1, 200)
		})
	}
	b.Run("turns", func(b *testing.B) { compareLinger(b, 1, 2, 200) })
}

// compareLinger has each goroutine lock and unlock a key of its own, by so many clients in turn.
func compareLinger(b *testing.B, goroutines, clients, times int) {
	redistest.Require(b)
	s := redistest.NewProcess(b)
	ctx := context.Background()
	way := func(kind string) redistest.Way {
		locks := make([][]*latchkey.Lock, goroutines)
		turn := make([]int, goroutines) // each goroutine has its own
		for range clients {
			c := open(b, s)
			for g := range locks {
				l, err := newLock(c, kind, fmt.Sprint(kind, g))
				require.NoError(b, err)
				locks[g] = append(locks[g], l)
			}
		}
		return func(g int) error {
			turn[g]++
			return lockUnlock(ctx, locks[g][turn[g]%clients])
		}
	}
	plain := s.Client(b)
	lingering := way("lingering")
	for g := range goroutines {
		for range clients { // each has had it
			require.NoError(b, lingering(g))
		}
	}
	const counted = 20
	before := redistest.Scripts(b, plain)
	for range counted {
		for g := range goroutines {
			require.NoError(b, lingering(g))
		}
	}
	sent := redistest.Scripts(b, plain) - before
	m := redistest.Compare(b, goroutines, times, redistest.Floor(s.Client(b)), way("rlock"), lingering)
	b.ReportMetric(m[2].Nanoseconds, "ns/pair")
	b.ReportMetric(m[0].Nanoseconds/m[2].Nanoseconds, "of-floor")
	b.ReportMetric(m[1].Nanoseconds/m[2].Nanoseconds, "of-rlock")
	b.ReportMetric(m[0].Nanoseconds/m[1].Nanoseconds, "rlock-of-floor")
	b.ReportMetric(m[2].Allocations, "allocs/pair")
	b.ReportMetric(m[2].Bytes, "B/pair")
	b.ReportMetric(float64(sent)/float64(counted*goroutines), "commands/pair")
}
