package rwlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/redistest/baseline"
	"github.com/latchkey-go/latchkey/rwlock"
)

// raw returns the two scripts of a half sent as they are.
func raw(b testing.TB, s *redistest.Server, demand lua.Demand) redistest.Way {
	b.Helper()
	k, err := lua.NewKeys(lua.ReadWrite, "raw", false)
	require.NoError(b, err)
	conn, ctx := lua.Conn{Client: s.Client(b)}, context.Background()
	n := uint64(0)
	return func(int) error {
		n++
		owner := lua.Owner("RAW", n)
		if _, err := conn.Acquire(ctx, k, lua.Claim{Owner: owner, Lease: 10_000, Longest: 1000, Demand: demand}, 0, lua.First); err != nil {
			return err
		}
		_, err := conn.Release(ctx, k, lua.Ending{Owner: owner}, 0)
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

// BenchmarkPair is one goroutine that reads, or writes: a Lock and an Unlock, compared with its floors in the
// same run. "joined" is a reader beside another one of its process, which sends no command.
func BenchmarkPair(b *testing.B) {
	for _, kind := range []string{"read", "write", "joined"} {
		b.Run(kind, func(b *testing.B) {
			s := redistest.New(b)
			l := newLock(b, open(b, s))
			half, demand := l.Read(), lua.Demand{Shared: true}
			ctx := context.Background()
			switch kind {
			case "write":
				half, demand = l.Write(), lua.Demand{}
			case "joined":
				beside, err := half.Lock(ctx)
				require.NoError(b, err)
				defer func() { require.NoError(b, beside.Unlock(ctx)) }()
			}
			m := redistest.Compare(b, 1, 500, redistest.Floor(s.Client(b)), raw(b, s, demand), func(int) error { return lockUnlock(ctx, half) })
			b.ReportMetric(m[2].Nanoseconds, "ns/pair")
			b.ReportMetric(m[0].Nanoseconds/m[2].Nanoseconds, "of-floor")
			b.ReportMetric(m[1].Nanoseconds/m[2].Nanoseconds, "of-raw")
			b.ReportMetric(m[2].Allocations, "allocs/pair")
		})
	}
}

// BenchmarkReaders is 64 goroutines of one process that read, for no time or for a millisecond, compared with
// Redisson's protocol in the same run.
func BenchmarkReaders(b *testing.B) {
	for _, section := range []time.Duration{0, time.Millisecond} {
		b.Run(fmt.Sprint("section=", section), func(b *testing.B) {
			redistest.Require(b)
			s := redistest.NewProcess(b)
			plain, ctx := s.Client(b), context.Background()
			l := newLock(b, open(b, s))
			theirs, err := baseline.NewRWLock(s.Addr, "theirs", 30*time.Second)
			require.NoError(b, err)
			b.Cleanup(theirs.Close)
			times := 200
			work := func() {}
			if section > 0 {
				times, work = 20, func() { <-time.After(section) }
			}
			var sections, theirSections atomic.Int64
			before := redistest.Scripts(b, plain)
			m := redistest.Compare(b, 64, times,
				func(g int) error {
					if err := theirs.Read(ctx, g); err != nil {
						return err
					}
					work()
					theirSections.Add(1)
					return theirs.UnlockRead(ctx, g)
				},
				func(int) error {
					h, err := l.Read().Lock(ctx)
					if err != nil {
						return err
					}
					work()
					sections.Add(1)
					return h.Unlock(ctx)
				})
			// Theirs costs two for each section: nobody writes.
			scripts := redistest.Scripts(b, plain) - before - 2*theirSections.Load()
			b.ReportMetric(1e9/m[0].Nanoseconds, "redisson-pairs/s")
			b.ReportMetric(1e9/m[1].Nanoseconds, "pairs/s")
			b.ReportMetric(m[0].Nanoseconds/m[1].Nanoseconds, "of-redisson")
			b.ReportMetric(float64(scripts)/float64(sections.Load()), "commands/pair")
			b.ReportMetric(m[1].Allocations, "allocs/pair")
		})
	}
}

// BenchmarkContended has goroutines of some clients read, and write one time in ten, and reports the commands
// for each section.
func BenchmarkContended(b *testing.B) {
	for _, clients := range []int{1, 8} {
		for _, waiters := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("clients=%d/waiters=%d", clients, waiters), func(b *testing.B) {
				redistest.Require(b)
				s := redistest.NewProcess(b)
				locks := make([]*rwlock.Lock, clients)
				for i := range locks {
					locks[i] = newLock(b, open(b, s))
					require.NoError(b, lockUnlock(context.Background(), locks[i].Read())) // the server learns the scripts
					require.NoError(b, lockUnlock(context.Background(), locks[i].Write()))
				}
				redistest.Contend(b, s, waiters, func(goroutine, n int) error {
					l := locks[goroutine%clients]
					if n%10 == 0 {
						return lockUnlock(context.Background(), l.Write())
					}
					return lockUnlock(context.Background(), l.Read())
				})
			})
		}
	}
}
