package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	java "github.com/latchkey-go/latchkey/internal/test/redistest/redisson"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerMode) != "" {
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	redistest.Main(m)
}

// A very short run of everything: every contender does something, ours exclude each other, readers read
// together and beside no writer, nobody buys what is gone under a lock, and the tables and charts are
// written.
func TestRun(t *testing.T) {
	redistest.Require(t)
	redis, err := startServer("")
	require.NoError(t, err)
	defer redis.stop()
	defer removeProgram()
	etcd, stop, err := startEtcd()
	require.NoError(t, err)
	defer stop()
	var some []scenario
	for _, s := range scenarios() {
		if s.Name == "held" || s.Name == "idle" || s.X > 100 || s.X > 16 && (s.Name == "processes" || s.Name == "spin") {
			continue // they take their time
		}
		if java.Lacks() != "" || s.Name != "uncontended" { // the same
			s.Contenders = slices.DeleteFunc(s.Contenders, func(name string) bool { return name == realRedisson })
		}
		some = append(some, s)
	}
	results := &Results{Machine: machine(), Redis: redis.version(), Versions: versions()}
	require.NoError(t, run(t.Context(), results, some, plan{duration: 100 * time.Millisecond, rounds: 1, profiles: t.TempDir()}, redis, etcd))
	for _, row := range results.Rows {
		require.Empty(t, row.Error, "%s %s", row.Scenario, row.Contender)
		require.Len(t, row.Rounds, 1)
		r := row.Rounds[0]
		require.GreaterOrEqual(t, r.Seconds, 0.1, "%s %s", row.Scenario, row.Contender)
		require.Less(t, r.Seconds, 10.0, "%s %s", row.Scenario, row.Contender) // a busy machine wakes a process late
		l, err := libraryOf(row.Contender)
		if err == nil && (l.ours || l.local || l.name == realRedisson) {
			require.Positive(t, r.Done, "%s %s", row.Scenario, row.Contender)
			require.Zero(t, r.Overlaps, "%s %s", row.Scenario, row.Contender)
		}
		if strings.HasPrefix(row.Scenario, "read") {
			require.Positive(t, r.Extra["reads"], "%s %s", row.Scenario, row.Contender)
			require.Zero(t, r.Overlaps, "%s %s", row.Scenario, row.Contender)
		}
		if row.Scenario == "readers 1 ms" && row.Contender == "rwlock" {
			require.EqualValues(t, 64, r.Together)
		}
		if row.Scenario == "market" && row.Contender != "no lock" {
			require.Zero(t, r.Extra["bought what was gone"], row.Contender)
			require.Zero(t, r.Extra["purchase retries"]*float64(strings.Count(row.Contender, "lock")), "%s retries", row.Contender)
		}
	}
	out := t.TempDir()
	require.NoError(t, render(results, out))
	for _, name := range []string{"results.md", "throughput.svg", "longest.svg", "handoff.svg", "commands-waiters.svg", "commands-processes.svg"} {
		text, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		require.NotEmpty(t, text)
		require.NotContains(t, string(text), "NaN", name)
	}
	require.Contains(t, report(t, out), "Inside one process the floor is a semaphore")
}

// A server that is silent for a moment must not stop anybody: a contender that gives up its first command and
// is never woken would hang until the round is over.
func TestSlowServer(t *testing.T) {
	redistest.Require(t)
	redis, err := startServer("")
	require.NoError(t, err)
	defer redis.stop()
	for _, l := range libraries {
		if l.etcd || l.several || l.local || l.name == realRedisson {
			continue // it does not use this server, or not this one alone, or is a process of its own
		}
		t.Run(l.name, func(t *testing.T) {
			c, err := l.open(redis.addr)
			require.NoError(t, err)
			defer c.Close()
			ctx, cancel := context.WithCancel(t.Context()) // without a deadline, as in a round
			defer time.AfterFunc(10*time.Second, cancel).Stop()
			require.NoError(t, redis.do("CLIENT", "PAUSE", "300"))
			unlock, err := c.Lock(ctx, "slow-"+l.name)
			require.NoError(t, err)
			require.NoError(t, unlock())
		})
	}
}

// A row says why there is no result: what a process failed with, or that it hung and was killed in bounded
// time.
func TestNotReady(t *testing.T) {
	redistest.Require(t)
	redis, err := startServer("")
	require.NoError(t, err)
	defer redis.stop()
	s := scenario{Name: "uncontended", Kind: "locks", Processes: 2, Goroutines: 1, Keys: 1}
	_, err = round(s, "nobody", redis.addr, "", redis, 10*time.Millisecond)
	require.EqualError(t, err, `a process of nobody did not get ready: unknown contender "nobody"`)

	was := patience
	defer func() { patience = was }()
	patience = time.Second
	require.NoError(t, redis.do("CLIENT", "PAUSE", "60000"))
	_, err = round(s, "floor", redis.addr, "", redis, 10*time.Millisecond)
	require.EqualError(t, err, "a process of floor was not ready after 1.012s, and was killed")
}

func report(t *testing.T, out string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "results.md"))
	require.NoError(t, err)
	return string(text)
}

// A run in which all have failed has tables that say so, and no charts.
func TestAllFailed(t *testing.T) {
	out := t.TempDir()
	require.NoError(t, render(&Results{Rows: []Row{
		{Scenario: "fleet", Contender: "rlock", Error: "it broke"},
		{Scenario: "waiters", Series: "waiters", X: 10, Contender: "rlock", Error: "it broke"},
	}}, out))
	files, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, 2, strings.Count(report(t, out), "it broke"))
	require.NotContains(t, report(t, out), "semaphore of one", "which did not take part")
}

// A process that alternates waits until the other has the lock; one that takes turns, until the other has
// unlocked.
func TestOthersTurn(t *testing.T) {
	w, err := openWitness(filepath.Join(t.TempDir(), "witness"))
	require.NoError(t, err)
	defer w.close()
	waits := func(j job) (both [2]bool) {
		for i := range both {
			j.Process = 1 + i
			both[i] = w.othersTurn(j)
		}
		return both
	}
	alternate, turns := job{Alternate: true}, job{Turns: true}
	require.Equal(t, [2]bool{false, true}, waits(turns), "the first begins")
	w.enter(1, time.Now(), time.Now())
	require.Equal(t, [2]bool{false, true}, waits(turns), "it has not unlocked")
	w.leave(1)
	require.Equal(t, [2]bool{true, false}, waits(alternate))
	require.Equal(t, [2]bool{false, true}, waits(turns), "its unlock is not over")
	w.unlocked.Store(1)
	require.Equal(t, [2]bool{true, false}, waits(turns))
	w.enter(2, time.Now(), time.Now())
	require.Equal(t, [2]bool{}, waits(alternate), "the first may ask while the second has it")
	require.Equal(t, [2]bool{true, false}, waits(turns))
	w.leave(2)
	w.unlocked.Store(2)
	require.Equal(t, [2]bool{false, true}, waits(turns))
	require.Equal(t, [2]bool{}, waits(job{}))
}

// A hand-off is a lock that somebody waited for: who came after the unlock would add how late it came.
func TestHandOffIsWaitedFor(t *testing.T) {
	w, err := openWitness(filepath.Join(t.TempDir(), "witness"))
	require.NoError(t, err)
	defer w.close()
	before := time.Now()
	w.enter(1, before, before)
	w.leave(1)
	freed := time.Unix(0, w.freed.Load())
	late := freed.Add(time.Millisecond)
	require.Zero(t, w.enter(2, freed, late))
	w.inside.Add(-1)
	require.Equal(t, time.Millisecond, w.enter(2, freed.Add(-1), late))
	w.inside.Add(-1)
	require.Zero(t, w.enter(1, freed.Add(-1), late), "it had the lock itself")
}

// A median, and a spread as a share of it.
// A run of some scenarios leaves the rows of the others, in their order.
func TestRunJoinsTheOneBefore(t *testing.T) {
	row := func(scenario string, x, rounds int) Row {
		return Row{Scenario: scenario, X: x, Rounds: make([]Round, rounds)}
	}
	before := &Results{Redis: "7", Command: "all", Rows: []Row{row("a", 0, 1), row("a", 0, 1), row("b", 1, 1), row("b", 2, 1), row("c", 0, 1)}}
	r := &Results{Redis: "7", Command: "some", Rows: []Row{row("b", 2, 5), row("a", 0, 5), row("new", 0, 5)}}
	r.joins(before)
	require.Equal(t, []Row{row("a", 0, 5), row("b", 1, 1), row("b", 2, 5), row("c", 0, 1), row("new", 0, 5)}, r.Rows)
	require.Equal(t, "all; some", r.Command)
	other := &Results{Redis: "8", Rows: []Row{row("b", 2, 5)}}
	other.joins(before)
	require.Len(t, other.Rows, 1, "on another server the rows of before do not compare")
}

// The long sections count by how long they are.
func TestShareOut(t *testing.T) {
	r := summary([]sample{{Done: 20}, {Done: 10}, {Done: 20}, {Done: 10}})
	r.shareOut([]sample{{Done: 20}, {Done: 10}, {Done: 20}, {Done: 10}}, time.Millisecond, 10*time.Millisecond)
	require.InDelta(t, 20.0/60, r.Extra[longHolds], 1e-9)
	require.InDelta(t, 200.0/240, r.Extra[longTime], 1e-9)
	none := summary([]sample{{}, {}})
	none.shareOut([]sample{{}, {}}, time.Millisecond, 10*time.Millisecond)
	require.NotContains(t, none.Extra, longHolds)
}

func TestCommandLine(t *testing.T) {
	require.Equal(t, "go run ./bench", commandLine(nil))
	require.Equal(t, `go run ./bench --instructions --server "/lib/ld.so /bin/valkey-server" --only ""`,
		commandLine([]string{"--instructions", "--server", "/lib/ld.so /bin/valkey-server", "--only", ""}))
}

func TestSummary(t *testing.T) {
	row := Row{Rounds: []Round{{Rate: 10}, {Rate: 30}, {Rate: 20}}}
	require.InDelta(t, 20, row.median(rate), 0)
	require.InDelta(t, 1, row.spread(rate), 0)
	empty := Row{}
	require.Zero(t, empty.median(rate)+empty.spread(rate))
	r := summary([]sample{{Done: 30, Took: time.Second}, {Done: 10, Took: 2 * time.Second}})
	require.EqualValues(t, 40, r.Done)
	require.InDelta(t, 20, r.Rate, 0)
	require.InDelta(t, 3, r.Fairness, 0)
}
