//go:build unix

package redisson

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/internal/test/redistest/redisson"
)

// side is what one side got of a run.
type side struct {
	holds             int
	p50, p99, longest time.Duration // of waits
}

func (s side) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.3g ms", float64(d)/1e6) }
	return fmt.Sprintf("%d holds, waits p50 %s, p99 %s, longest %s", s.holds, ms(s.p50), ms(s.p99), ms(s.longest))
}

// sideOf sums up the records of a side from begin to end. Who still waits at the end has waited until then.
func sideOf(all []record, begin, end time.Duration) (s side) {
	var waits []time.Duration
	for _, r := range all {
		if r.Entered > 0 && r.Entered >= begin && r.Entered <= end {
			s.holds++
		}
		entered := r.Entered
		if entered == 0 || entered > end {
			entered = end
		}
		if wait := entered - max(r.Asked, begin); wait >= 0 {
			waits = append(waits, wait)
		}
	}
	if len(waits) > 0 {
		slices.Sort(waits)
		s.p50, s.p99, s.longest = waits[len(waits)/2], waits[len(waits)*99/100], waits[len(waits)-1]
	}
	return s
}

// run is one of both sides beside each other.
type run struct {
	kind       string // Redisson's
	java, ours []record
	begin, end time.Duration // when both ran
}

// warm has a program compile what a run needs.
func (d *driver) warm(t testing.TB, like plan) {
	t.Helper()
	like.name, like.lasts, like.work = "warm:"+like.kind, time.Second, 0
	if like.kind == "counting" || like.kind == "permits" {
		d.tell(t, "semaphore set %s %s 2", like.kind, like.name)
		d.await(t, "permitted", like.name, "true")
	}
	d.tell(t, "%s", like.text("warm", filepath.Join(t.TempDir(), "warm")))
	d.await(t, "done", "warm")
}

// beside runs both plans at the same time, on one server.
func beside(t *testing.T, d *driver, java, here plan, addrs ...string) run {
	t.Helper()
	dir := t.TempDir()
	files := [2]string{filepath.Join(dir, "java"), filepath.Join(dir, "ours")}
	w := ours(t, here, files[1], addrs...)
	d.tell(t, "%s", java.text("r", files[0]))
	w.Next(t, "running")
	d.await(t, "running", "r")
	begin := redisson.Monotonic()
	w.Next(t, "done")
	end := redisson.Monotonic()
	d.await(t, "done", "r")
	over := redisson.Monotonic()
	r := run{java.kind, readRecords(t, files[0], true, over), readRecords(t, files[1], false, over), begin, min(end, begin+here.lasts)}
	r.begin = max(holds(r.java)[0].Entered, holds(r.ours)[0].Entered)
	return r
}

func (r run) sides() (java, ours side) {
	return sideOf(r.java, r.begin, r.end), sideOf(r.ours, r.begin, r.end)
}

// judge fails where holds overlapped, tokens did not grow, or a side starved: share is the least that either
// must have of the holds.
func (r run) judge(t *testing.T, version string, permits int, share float64) {
	t.Helper()
	all := holds(r.java, r.ours)
	requireTurns(t, all, permits)
	if r.kind == "fenced" {
		requireGrowingTokens(t, all)
	}
	java, ours := r.sides()
	t.Logf("\n  Redisson %s: %v\n  latchkey:        %v", version, java, ours)
	least := math.Min(float64(java.holds), float64(ours.holds)) / float64(max(java.holds+ours.holds, 1))
	require.GreaterOrEqual(t, least, share, "the lesser share of the holds")
	// Ours asks by itself after two seconds, and Redisson's when a lease ends.
	require.Less(t, java.longest, 1900*time.Millisecond)
	require.Less(t, ours.longest, 1900*time.Millisecond)
}

// In a cluster Redisson's processes use sharded pub/sub, as ours do.
func TestTurnsInACluster(t *testing.T) {
	version := newest()
	program(t, version) // or it is skipped
	cluster := redistest.NewCluster(t)
	var addrs, urls []string
	for _, node := range cluster.Nodes {
		addrs, urls = append(addrs, node.Addr), append(urls, node.URL())
	}
	d := java(t, version, "--cluster", "--redis", strings.Join(urls, ","))
	for _, kind := range []string{"fenced", "rw:50", "counting", "permits"} {
		t.Run(kind, func(t *testing.T) {
			p, permits := plan{kind: kind, name: kind, threads: 4, work: time.Millisecond, lasts: seconds()}, 1
			d.warm(t, p)
			if kind == "counting" || kind == "permits" {
				permits = 3
				d.tell(t, "semaphore set %s %s %d", kind, kind, permits)
				d.await(t, "permitted", kind, "true")
			}
			beside(t, d, p, p, addrs...).judge(t, version, permits, 0.2)
		})
	}
}

// Processes of both take turns at everything that they can share: nothing overlaps, tokens grow, and neither
// side starves.
func TestTurns(t *testing.T) {
	rows := []struct {
		what       string
		java, ours plan
		permits    int
		share      float64 // of the holds that either side has at least; half, where the machine is not busy
	}{
		{"lock, 8 and 8, no work", plan{kind: "lock", threads: 8}, plan{kind: "lock", threads: 8}, 1, 0.1},
		{"lock, 8 and 8, 1 ms", plan{kind: "lock", threads: 8, work: time.Millisecond}, plan{kind: "lock", threads: 8, work: time.Millisecond}, 1, 0.1},
		{"lock, 8 and 4 processes of 2, 1 ms", plan{kind: "lock", threads: 8, work: time.Millisecond}, plan{kind: "lock", threads: 8, clients: 4, work: time.Millisecond}, 1, 0.1},
		{"fenced, 1 and 1, 20 ms", plan{kind: "fenced", threads: 1, work: 20 * time.Millisecond}, plan{kind: "fenced", threads: 1, work: 20 * time.Millisecond}, 1, 0.1},
		{"fair of ours beside RLock, 1 ms", plan{kind: "lock", threads: 4, work: time.Millisecond}, plan{kind: "fair", threads: 4, work: time.Millisecond}, 1, 0.1},
		{"counting over 3, 1 ms", plan{kind: "counting", threads: 4, work: time.Millisecond}, plan{kind: "counting", threads: 4, work: time.Millisecond}, 3, 0.1},
		{"permits over 3, 1 ms", plan{kind: "permits", threads: 4, work: time.Millisecond}, plan{kind: "permits", threads: 4, work: time.Millisecond}, 3, 0.1},
		{"writer beside 4 readers, 10 ms", plan{kind: "write", threads: 1, work: time.Millisecond}, plan{kind: "read", threads: 4, work: 10 * time.Millisecond}, 1, 0.002},
		{"writer beside 8 readers, 10 ms", plan{kind: "write", threads: 1, work: time.Millisecond}, plan{kind: "read", threads: 8, clients: 4, work: 10 * time.Millisecond}, 1, 0.002},
		{"rw, 4 and 4, 1 ms", plan{kind: "rw:80", threads: 4, work: time.Millisecond}, plan{kind: "rw:80", threads: 4, work: time.Millisecond}, 1, 0.03},
	}
	each(t, func(t *testing.T, version string) {
		s := redistest.NewProcess(t)
		d := java(t, version, "--redis", s.URL())
		warm := map[string]bool{}
		for n, row := range rows {
			row.java.name = fmt.Sprint("turns:", n)
			lasts := seconds()
			if row.java.kind == "write" { // a Java process that is late three times in a row is not waited for, for half a second
				lasts *= 3
			}
			row.ours.name, row.java.lasts, row.ours.lasts = row.java.name, lasts, lasts
			t.Run(row.what, func(t *testing.T) {
				if !warm[row.java.kind] {
					d.warm(t, row.java)
					warm[row.java.kind] = true
				}
				if row.permits > 1 {
					d.tell(t, "semaphore set %s %s %d", row.java.kind, row.java.name, row.permits)
					d.await(t, "permitted", row.java.name, "true")
				}
				beside(t, d, row.java, row.ours, s.Addr).judge(t, version, row.permits, row.share)
			})
		}
	})
}
