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
	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/rlock"
)

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
