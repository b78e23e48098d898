package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/redistest"
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

// A very short run of everything: every contender does something, ours exclude each other, nobody buys what is gone under a lock, and
// the tables and charts are written.
func TestRun(t *testing.T) {
	redistest.Require(t)
	redis, err := startServer("")
	require.NoError(t, err)
	defer redis.stop()
	etcd, stop, err := startEtcd()
	require.NoError(t, err)
	defer stop()
	var some []scenario
	for _, s := range scenarios() {
		if s.Name == "held" || s.Name == "idle" || s.X > 100 || s.Name == "processes" && s.X > 16 {
			continue // they take their time
		}
		some = append(some, s)
	}
	results := &Results{Machine: machine(), Redis: redis.version(), Versions: versions()}
	require.NoError(t, run(t.Context(), results, some, plan{duration: 100 * time.Millisecond, rounds: 1, profiles: t.TempDir()}, redis, etcd))
	for _, row := range results.Rows {
		require.Empty(t, row.Error, "%s %s", row.Scenario, row.Contender)
		require.Len(t, row.Rounds, 1)
		r := row.Rounds[0]
		require.InDelta(t, 0.1, r.Seconds, 0.5)
		l, err := libraryOf(row.Contender)
		if err == nil && l.ours {
			require.Positive(t, r.Done, "%s %s", row.Scenario, row.Contender)
			require.Zero(t, r.Overlaps, "%s %s", row.Scenario, row.Contender)
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
}

// A median, and a spread as a share of it.
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
