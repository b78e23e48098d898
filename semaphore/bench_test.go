package semaphore_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/redistest/baseline"
	"github.com/latchkey-go/latchkey/semaphore"
)

// raw returns the two scripts of a kind of semaphore sent as they are.
func raw(b testing.TB, s *redistest.Server, family lua.Family) redistest.Way {
	k, err := lua.NewKeys(family, "raw"+strconv.Itoa(int(family)), false)
	require.NoError(b, err)
	conn, ctx := lua.Conn{Client: s.Client(b)}, context.Background()
	_, _, _, err = conn.Capacity(ctx, k, "RAW:0", 0, lua.Set, 16, 1000, 0)
	require.NoError(b, err)
	n := uint64(0)
	return func(int) error {
		n++
		owner, answered := lua.Owner("RAW", n), ""
		claim := lua.Claim{Owner: owner, Lease: 10_000, Demand: lua.Demand{Permits: 1}}
		give := lua.Give(lua.Ending{Owner: owner})
		if family == lua.Plain {
			n++
			give = lua.Put(lua.Owner("RAW", n), 1)
			answered = strconv.FormatUint(n-2, 10) + " " + strconv.FormatUint(n-3, 10)
		}
		if _, err := conn.Trade(ctx, k, 0, 1000, answered, lua.Take(claim, lua.First)); err != nil {
			return err
		}
		_, err := conn.Trade(ctx, k, 0, 1000, "", give)
		return err
	}
}

// BenchmarkPair is one goroutine that acquires a permit and releases it, compared with its floors in the same
// run.
func BenchmarkPair(b *testing.B) {
	for name, family := range map[string]lua.Family{"leased": lua.Leased, "counting": lua.Plain} {
		b.Run(name, func(b *testing.B) {
			s := redistest.New(b)
			c, ctx := open(b, s.Option()), context.Background()
			leased, err := semaphore.New(c, "pair", semaphore.WithCapacity(16))
			require.NoError(b, err)
			counting, err := semaphore.NewCounting(c, "counting", semaphore.WithCapacity(16))
			require.NoError(b, err)
			ours := func(int) error { return acquireRelease(ctx, leased, 1) }
			if family == lua.Plain {
				ours = func(int) error {
					if err := counting.Acquire(ctx, 1); err != nil {
						return err
					}
					return counting.Release(ctx, 1)
				}
			}
			m := redistest.Compare(b, 1, 500, redistest.Floor(s.Client(b)), raw(b, s, family), ours)
			b.ReportMetric(m[2].Nanoseconds, "ns/pair")
			b.ReportMetric(m[0].Nanoseconds/m[2].Nanoseconds, "of-floor")
			b.ReportMetric(m[1].Nanoseconds/m[2].Nanoseconds, "of-raw")
			b.ReportMetric(m[2].Allocations, "allocs/pair")
		})
	}
}

func acquireRelease(ctx context.Context, s *semaphore.Semaphore, n int) error {
	p, err := s.Acquire(ctx, n)
	if err != nil {
		return err
	}
	return p.Release(ctx)
}

// BenchmarkPermits is 64 goroutines of one process over 16 permits, which they hold for no time or for a
// millisecond, compared with Redisson's protocol in the same run.
func BenchmarkPermits(b *testing.B) {
	for _, section := range []time.Duration{0, time.Millisecond} {
		b.Run(fmt.Sprint("section=", section), func(b *testing.B) { benchmarkPermits(b, section) })
	}
}

func benchmarkPermits(b *testing.B, section time.Duration) {
	redistest.Require(b)
	s := redistest.NewProcess(b)
	const permits = 16
	ctx := context.Background()
	c := open(b, s.Option())
	leased, err := semaphore.New(c, "permits", semaphore.WithCapacity(permits))
	require.NoError(b, err)
	counting, err := semaphore.NewCounting(c, "counting", semaphore.WithCapacity(permits))
	require.NoError(b, err)
	passed, err := semaphore.New(c, "passed", semaphore.WithCapacity(permits), semaphore.WithBudget(300, 50*time.Millisecond))
	require.NoError(b, err)
	theirs, err := baseline.NewSemaphore(s.Addr, "theirs", permits)
	require.NoError(b, err)
	b.Cleanup(theirs.Close)
	taken := atomic.Int64{}
	work := func() {
		if section > 0 {
			<-time.After(section)
		}
	}
	times := 500
	if section > 0 {
		times = 100
	}
	m := redistest.Compare(b, 64, times,
		func(int) error {
			if err := theirs.Acquire(ctx); err != nil {
				return err
			}
			taken.Add(1)
			work()
			return theirs.Release(ctx)
		},
		func(int) error {
			p, err := leased.Acquire(ctx, 1)
			if err != nil {
				return err
			}
			work()
			return p.Release(ctx)
		},
		func(int) error {
			if err := counting.Acquire(ctx, 1); err != nil {
				return err
			}
			work()
			return counting.Release(ctx, 1)
		},
		func(int) error {
			p, err := passed.Acquire(ctx, 1)
			if err != nil {
				return err
			}
			work()
			return p.Release(ctx)
		})
	b.ReportMetric(1e9/m[0].Nanoseconds, "redisson-pairs/s")
	b.ReportMetric(1+float64(theirs.Tries())/float64(taken.Load()), "redisson-commands/pair")
	b.ReportMetric(1e9/m[1].Nanoseconds, "pairs/s")
	b.ReportMetric(m[0].Nanoseconds/m[1].Nanoseconds, "of-redisson")
	b.ReportMetric(m[0].Nanoseconds/m[2].Nanoseconds, "counting-of-redisson")
	b.ReportMetric(m[0].Nanoseconds/m[3].Nanoseconds, "budget-of-redisson")
}

// BenchmarkContended hands permits around among many waiters and reports the commands for each acquisition.
func BenchmarkContended(b *testing.B) {
	for _, clients := range []int{1, 8} {
		for _, waiters := range []int{1, 10, 100, 1000, 10_000} {
			b.Run(fmt.Sprintf("clients=%d/waiters=%d", clients, waiters), func(b *testing.B) {
				redistest.Require(b)
				s := redistest.NewProcess(b)
				semaphores := make([]*semaphore.Semaphore, clients)
				for i := range semaphores {
					semaphores[i] = newSemaphore(b, open(b, s.Option()), semaphore.WithCapacity(4))
					require.NoError(b, acquireRelease(context.Background(), semaphores[i], 1)) // the server learns the scripts
				}
				redistest.Contend(b, s, max(waiters, clients), func(goroutine, n int) error {
					return acquireRelease(context.Background(), semaphores[goroutine%clients], 1+n%4)
				})
			})
		}
	}
}
