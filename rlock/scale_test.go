package rlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

// BenchmarkCancelTogether is 10,000 fair waiters of 8 clients whose context ends at the same time, and what
// another process that uses the server notices of that.
func BenchmarkCancelTogether(b *testing.B) {
	redistest.Require(b)
	const waiters, clients = 10_000, 8
	for b.Loop() {
		s := redistest.NewProcess(b)
		plain := s.Client(b)
		holder, err := fairlock.New(open(b, s), "one")
		require.NoError(b, err)
		held, err := holder.Lock(context.Background())
		require.NoError(b, err)
		locks := make([]*fairlock.Lock, clients)
		for i := range locks {
			locks[i], err = fairlock.New(open(b, s), "one")
			require.NoError(b, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for i := range waiters {
			wg.Go(func() {
				if _, err := locks[i%clients].Lock(ctx); err == nil {
					b.Error("a waiter got the lock")
				}
			})
		}
		length := func() int64 {
			n, err := plain.Do(context.Background(), plain.B().Llen().Key("latchkey_queue:{one}").Build()).AsInt64()
			require.NoError(b, err)
			return n
		}
		require.Eventually(b, func() bool { return length() == waiters }, time.Minute, 10*time.Millisecond)
		memory, err := plain.Do(context.Background(), plain.B().MemoryUsage().Key("latchkey_queue:{one}").Samples(0).Build()).AsInt64()
		require.NoError(b, err)
		quiet := fleet(b, []task{{Addr: s.Addr, Kind: "bystander", Duration: time.Second}})[0].Waits
		wait := launch(b, []task{{Addr: s.Addr, Kind: "bystander", Duration: time.Second}})
		sent, began := redistest.Scripts(b, plain), time.Now()
		cancel()
		wg.Wait()
		returned := time.Since(began)
		require.Eventually(b, func() bool { return length() == 0 }, time.Minute, time.Millisecond)
		gone := time.Since(began)
		sent = redistest.Scripts(b, plain) - sent
		noticed := wait()[0].Waits
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(memory)/waiters, "queue-B/waiter")
		b.ReportMetric(float64(sent), "commands")
		b.ReportMetric(returned.Seconds()*1e3, "returned-ms")
		b.ReportMetric(gone.Seconds()*1e3, "gone-ms")
		b.ReportMetric(quiet.at(0.99).Seconds()*1e3, "p99-GET-before-ms")
		b.ReportMetric(noticed.at(0.99).Seconds()*1e3, "p99-GET-ms")
		b.ReportMetric(noticed.at(1).Seconds()*1e3, "longest-GET-ms")
		require.NoError(b, held.Unlock(context.Background()))
	}
}

// BenchmarkManyHolds is 100,000 holds of one client for a minute.
func BenchmarkManyHolds(b *testing.B) {
	redistest.Require(b)
	const holds = 100_000
	for b.Loop() {
		s := redistest.NewProcess(b)
		plain := s.Client(b)
		var lost atomic.Int64
		c := open(b, s, latchkey.WithObserver(latchkey.Observer{Lost: func(latchkey.Event) { lost.Add(1) }}))
		all := make([]*latchkey.Hold, holds)
		var wg sync.WaitGroup
		began := time.Now()
		for g := range 64 {
			wg.Go(func() {
				for i := g; i < holds; i += 64 {
					l, err := rlock.New(c, fmt.Sprint("hold:", i))
					if err == nil {
						all[i], err = l.Lock(context.Background())
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		b.Logf("taken in %v", time.Since(began).Round(time.Millisecond))
		server := func() float64 {
			info, err := plain.Do(context.Background(), plain.B().Info().Section("cpu").Build()).ToString()
			require.NoError(b, err)
			return field(b, info, "used_cpu_sys") + field(b, info, "used_cpu_user")
		}
		client := func() float64 { return redistest.CPU().Seconds() }
		sent, inServer, inClient := redistest.Scripts(b, plain), server(), client()
		began = time.Now()
		least := time.Hour
		for time.Since(began) < time.Minute {
			<-time.After(time.Second) // the measured span
			least = min(least, all[int(time.Since(began))%holds].Remaining())
		}
		span := time.Since(began).Seconds()
		b.ReportMetric(0, "ns/op")
		b.ReportMetric((server()-inServer)/span, "cores-server")
		b.ReportMetric((client()-inClient)/span, "cores-client")
		b.ReportMetric(float64(redistest.Scripts(b, plain)-sent)/span, "commands/s")
		for _, h := range all {
			least = min(least, h.Remaining())
		}
		b.ReportMetric(least.Seconds(), "least-trust-s")
		b.ReportMetric(float64(lost.Load()), "lost")
		for g := range 64 {
			wg.Go(func() {
				for i := g; i < holds; i += 64 {
					if err := all[i].Unlock(context.Background()); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
}
