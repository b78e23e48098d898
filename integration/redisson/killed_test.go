//go:build unix

package redisson

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/redistest/redisson"
)

// Processes of both sides are killed while they hold, wait, or are given something. Nothing overlaps, tokens
// grow, and who is left goes on when the lease of a killed holder is over.
func TestKilled(t *testing.T) {
	redistest.Alone(t)
	each(t, func(t *testing.T, version string) {
		s := redistest.NewProcess(t)
		kinds := []string{"lock", "fenced", "rw:50"}
		all := map[string][]record{}
		for total := 0; total < leastHolds(); {
			first := rand.IntN(2)
			for kind, records := range killRound(t, s, version, kinds, first == 0) {
				all[kind] = append(all[kind], records...)
				total += len(records)
			}
		}
		for kind, records := range all {
			t.Logf("Redisson %s: %d holds of %s", version, len(records), kind)
			records = holds(records)
			requireTurns(t, records, 1)
			if kind == "fenced" {
				requireGrowingTokens(t, records)
			}
		}
	})
}

// killRound has processes of both run for a while, kills one side, and then the other. It returns their
// holds.
func killRound(t *testing.T, s *redistest.Server, version string, kinds []string, javaFirst bool) map[string][]record {
	t.Helper()
	dir := t.TempDir()
	d := java(t, version, "--redis", s.URL(), "--watchdog", fmt.Sprint(lease.Milliseconds()))
	var workers []*redistest.Worker
	file := func(side, kind string) string { return filepath.Join(dir, side+kind) }
	for _, kind := range kinds {
		p := plan{kind: kind, name: kind, threads: 3, work: time.Millisecond, lasts: time.Hour}
		d.tell(t, "%s", p.text(kind, file("java", kind)))
		d.await(t, "running", kind)
		w := ours(t, p, file("ours", kind), s.Addr)
		w.Next(t, "running")
		workers = append(workers, w)
	}
	time.Sleep(seconds()/2 + rand.N(seconds())) // the moment is a matter of chance
	killOurs := func() {
		for _, w := range workers {
			w.Kill()
		}
	}
	first, second := killOurs, d.kill
	if javaFirst {
		first, second = second, first
	}
	first()
	killed := redisson.Monotonic()
	time.Sleep(lease + 2*time.Second) // who is left must have had it by then, which is looked at below
	second()
	over := redisson.Monotonic()
	d.process.Wait()
	killOurs()
	found := map[string][]record{}
	javaOver, oursOver := over, killed
	if javaFirst {
		javaOver, oursOver = killed, over
	}
	for _, kind := range kinds {
		records := holds(readRecords(t, file("java", kind), true, javaOver), readRecords(t, file("ours", kind), false, oursOver))
		found[kind] = records
		require.NotEmpty(t, records)
		require.Greater(t, records[len(records)-1].Entered, killed+lease, "%s: who was left had nothing after the lease of the killed", kind)
	}
	return found
}
