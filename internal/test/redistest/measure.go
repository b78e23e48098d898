package redistest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Way is one way of doing what a benchmark compares. It is told which goroutine it is.
type Way func(goroutine int) error

// Measure is the cost of one operation: medians over the rounds.
type Measure struct {
	Nanoseconds float64 // from one to the next, of all goroutines together
	Allocations float64
	Bytes       float64 // allocated
}

// Compare runs the ways in turn, round by round, so that what disturbs the machine disturbs all. In each
// round so many goroutines run a way so many times each.
func Compare(b *testing.B, goroutines, times int, ways ...Way) []Measure {
	b.Helper()
	rounds := make([][]Measure, len(ways))
	for b.Loop() {
		for w, way := range ways {
			rounds[w] = append(rounds[w], Round(b, goroutines, times, way))
		}
	}
	b.ReportMetric(0, "ns/op") // of a round
	measures := make([]Measure, len(ways))
	for w := range ways {
		measures[w] = medians(rounds[w])
	}
	return measures
}

// Round has so many goroutines run a way so many times each.
func Round(b *testing.B, goroutines, times int, way Way) Measure {
	b.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	if goroutines == 1 {
		repeat(b, way, 0, times)
	} else {
		var wg sync.WaitGroup
		for i := range goroutines {
			wg.Go(func() { repeat(b, way, i, times) })
		}
		wg.Wait()
	}
	n := float64(goroutines * times)
	spent := float64(time.Since(start).Nanoseconds()) / n
	runtime.ReadMemStats(&after)
	return Measure{spent, float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n}
}

// medians are the medians of each figure over the rounds.
func medians(rounds []Measure) Measure {
	of := func(figure func(Measure) float64) float64 {
		var values []float64
		for _, r := range rounds {
			values = append(values, figure(r))
		}
		return median(values)
	}
	return Measure{
		of(func(m Measure) float64 { return m.Nanoseconds }), of(func(m Measure) float64 { return m.Allocations }),
		of(func(m Measure) float64 { return m.Bytes }),
	}
}

func repeat(b *testing.B, way Way, i, times int) {
	for range times {
		if err := way(i); err != nil {
			b.Error(err)
			return
		}
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// Floor is the least that a pair of commands can cost: two scripts that do nothing.
func Floor(c rueidis.Client) Way {
	nothing := rueidis.NewLuaScript("return 1")
	return func(int) error {
		for range 2 {
			if err := nothing.Exec(context.Background(), c, []string{"k"}, nil).Error(); err != nil {
				return err
			}
		}
		return nil
	}
}

// Scripts returns how many scripts the server has run, or was sent where time is virtual.
func (s *Server) Scripts(t testing.TB) int64 {
	t.Helper()
	if n := s.network; n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.scripts
	}
	return Scripts(t, s.plainly(t))
}

// KillClients ends the connections of that type, which is normal or pubsub. The client that asks for it keeps its own;
// where time is virtual, all of that type end.
func (s *Server) KillClients(t testing.TB, kind string) {
	t.Helper()
	if s.network != nil {
		s.network.cutOf(kind == "pubsub")
		return
	}
	c := s.plainly(t)
	require.NoError(t, c.Do(context.Background(), c.B().Arbitrary("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes").Build()).Error())
}

// plainly is a client for what the test asks of the server.
func (s *Server) plainly(t testing.TB) rueidis.Client {
	t.Helper()
	if s.plain == nil {
		s.plain = s.Client(t)
	}
	return s.plain
}

// Scripts returns how many scripts the server has run.
func Scripts(t testing.TB, c rueidis.Client) (total int64) {
	t.Helper()
	info, err := c.Do(context.Background(), c.B().Info().Section("commandstats").Build()).ToString()
	require.NoError(t, err)
	for _, name := range []string{"evalsha", "eval"} {
		if i := strings.Index(info, "cmdstat_"+name+":calls="); i >= 0 {
			var n int64
			_, err := fmt.Sscanf(info[i:], "cmdstat_"+name+":calls=%d", &n)
			require.NoError(t, err)
			total += n
		}
	}
	return total
}
