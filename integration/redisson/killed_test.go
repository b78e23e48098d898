//go:build unix

package redisson

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/internal/test/redistest/redisson"
)

// Processes of both sides are killed while they hold, wait, or are given something. Nothing overlaps, tokens
// grow, and who is left goes on when the lease of a killed holder is over.
func TestKilled(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		s := redistest.NewProcess(t)
		all, total := map[string][]record{}, 0
		for round := 0; total < leastHolds(); round++ {
			for kind, records := range killRound(t, s, version, round) {
				total += len(records)
				if kind == "counting" || kind == "permits" { // of this round alone
					requireTurns(t, records, permits)
					continue
				}
				all[kind] = append(all[kind], records...)
			}
		}
		t.Logf("Redisson %s: %d holds", version, total)
		for kind, records := range all {
			records = holds(records)
			requireTurns(t, records, 1)
			if kind == "fenced" {
				requireGrowingTokens(t, records)
			}
		}
	})
}

// permits is how many there are, one more than one side takes: a killed process does not give back those of
// a counting semaphore, nor one of Redisson those that it acquired without a lease.
const permits = 4

// killRound has processes of both run for a while, kills one side, and then the other. It returns their
// holds.
func killRound(t *testing.T, s *redistest.Server, version string, round int) map[string][]record {
	t.Helper()
	kinds := []string{"lock", "fenced", "rw:50", "counting", "permits"}
	javaFirst := rand.IntN(2) == 0
	dir := t.TempDir()
	d := java(t, version, "--redis", s.URL(), "--watchdog", fmt.Sprint(lease.Milliseconds()))
	var workers []*redistest.Worker
	file := func(side, kind string) string { return filepath.Join(dir, side+kind) }
	for _, kind := range kinds {
		p := plan{kind: kind, name: kind, threads: permits - 1, work: 100 * time.Microsecond, lasts: time.Hour}
		if kind == "counting" || kind == "permits" {
			p.name = fmt.Sprint(kind, round)
			d.tell(t, "semaphore set %s %s %d", kind, p.name, permits)
			d.await(t, "permitted", p.name, "true")
		}
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
