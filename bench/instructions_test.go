package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
)

// What callgrind writes, shortened.
const written = `# callgrind format
version: 1
creator: callgrind-3.19.0.GIT
pid: 7
part: 1

desc: Trigger: Program termination

positions: line
events: Ir
summary: 120000

fn=(1) main
12 120000

totals: 120034
`

func TestTotal(t *testing.T) {
	n, err := total([]byte(written))
	require.NoError(t, err)
	require.EqualValues(t, 120034, n)
	for text, want := range map[string]string{
		strings.Replace(written, "totals: 120034\n", "", 1): "a file of callgrind has 0 totals instead of one",
		written + "totals: 1\n":                             "a file of callgrind has 2 totals instead of one",
		strings.Replace(written, " Ir", " Dr", 1):           "this is no file of callgrind that counts instructions",
		"": "this is no file of callgrind that counts instructions",
	} {
		_, err := total([]byte(text))
		require.EqualError(t, err, want)
	}
}

// What a server does once is in both runs. 500 pairs and 1500 pairs are 1000 apart.
func TestPerPair(t *testing.T) {
	const once, each = 7_000_000, 120
	require.InDelta(t, each, perPair(once+500*each, once+1500*each, 500), 0)
}

func TestInstructionsSection(t *testing.T) {
	r := Instructions{
		When: "2026-01-02", Redis: "Redis 7.0", Valgrind: "3.19", Command: "go run ./bench --instructions", Pairs: 1000,
		Rows: []Count{
			{Contender: "floor", Instructions: 20_000, Scripts: 2}, {Contender: "rlock", Instructions: 121_040, Scripts: 2},
			{Contender: "spinlock", Error: "it | failed"},
		},
	}
	text := r.section()
	require.Contains(t, text, "\n## Instructions in Redis\n")
	require.Contains(t, text, "two runs\nthat are 1000 pairs apart.\nRedis 7.0; valgrind 3.19; 2026-01-02. Repeat with `go run ./bench --instructions`.")
	require.Contains(t, text, "| floor | 20.0 | 1 | 2 |\n| rlock | 121.0 | 6.1 | 2 |\n| spinlock | failed: it / failed |  |  |\n")
	r.Rows = r.Rows[1:]
	require.Contains(t, r.section(), "| rlock | 121.0 |  | 2 |\n", "there is no floor to compare with")
}

// Other servers stand beside the usual one, with the rows that it has.
func TestInstructionsOnOtherServers(t *testing.T) {
	r := Results{
		Instructions: &Instructions{Redis: "Redis 7.0", Rows: []Count{{Contender: "floor", Instructions: 20_000}, {Contender: "rlock", Instructions: 80_000}}},
		OnOthers: []*Instructions{{
			Redis: "Valkey 9.1", When: "2026-01-02",
			Rows: []Count{{Contender: "rlock", Instructions: 90_000}, {Contender: "floor", Error: "it failed"}, {Contender: "gone", Instructions: 1}},
		}},
	}
	text := r.onOthers()
	require.Contains(t, text, "2026-01-02")
	require.Contains(t, text, "|  | Redis 7.0 | Valkey 9.1 |\n| --- | --- | --- |\n| floor | 20.0 |  |\n| rlock | 80.0 | 90.0 |\n")
	require.NotContains(t, text, "gone")
	require.Equal(t, "9.1.2", field("# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.2\r\n", "valkey_version"))
	require.Empty(t, field("# Server\r\nredis_version:7.2.4\r\n", "valkey_version"))
}

// An ordinary run leaves the instructions that were counted before, in the record and in the report. A record
// that cannot be read is left alone.
func TestKeepsInstructions(t *testing.T) {
	redistest.Require(t)
	out := t.TempDir()
	args := []string{"bench", "--only", "uncontended", "--contenders", "floor", "--round", "20ms", "--rounds", "1", "--out", out}
	require.NoError(t, command().Run(t.Context(), args))
	r, err := recorded(out)
	require.NoError(t, err)
	require.Nil(t, r.Instructions)
	require.NotContains(t, report(t, out), "## Instructions in Redis")

	counted := &Instructions{When: "2026-01-02", Pairs: 1000, Rows: []Count{{Contender: "floor", Instructions: 20_000, Scripts: 2}}}
	require.NoError(t, keep(&Results{Instructions: counted}, out))
	require.NotContains(t, report(t, out), "without persistence", "there was no other run")
	require.NoError(t, command().Run(t.Context(), args))
	r, err = recorded(out)
	require.NoError(t, err)
	require.Equal(t, counted, r.Instructions)
	require.Len(t, r.Rows, 1)
	for _, part := range []string{"## one goroutine, one key", "## Instructions in Redis", "| floor | 20.0 | 1 | 2 |"} {
		require.Contains(t, report(t, out), part)
	}

	require.NoError(t, os.WriteFile(filepath.Join(out, recordFile), []byte("{"), 0o600))
	require.Error(t, command().Run(t.Context(), args))
	text, err := os.ReadFile(filepath.Join(out, recordFile))
	require.NoError(t, err)
	require.Equal(t, "{", string(text))
}

// It says what is missing, and what it cannot do.
func TestInstructionsRefused(t *testing.T) {
	out := t.TempDir()
	run := func(args ...string) error {
		return command().Run(t.Context(), append([]string{"bench", "--instructions", "--out", out}, args...))
	}
	require.EqualError(t, run("--redis", "127.0.0.1:1"), "--instructions and --redis do not go together")
	require.EqualError(t, run("--full"), "--instructions and --full do not go together")
	require.EqualError(t, run("--contenders", "nobody"), "no contender matches")

	bin := t.TempDir()
	t.Setenv("PATH", bin)
	err := run()
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.ErrorContains(t, err, "install valgrind")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "valgrind"), []byte("#!/bin/sh\necho valgrind-3\n"), 0o755)) //nolint:gosec // it is run
	err = run()
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.ErrorContains(t, err, "install redis-server")
	require.NoFileExists(t, filepath.Join(out, recordFile))
}

// All pairs do what they say on a server that is not slow: as many scripts as the protocol has, and none for
// anything else.
func TestPairs(t *testing.T) {
	redistest.Require(t)
	alone, err := startServer("")
	require.NoError(t, err)
	defer alone.stop()
	cluster, err := launch(nil, clustered...)
	require.NoError(t, err)
	defer cluster.stop()
	require.NoError(t, cluster.allSlots())
	for _, p := range allPairs() {
		redis := alone
		if p.cluster {
			redis = cluster
		}
		t.Run(p.name, func(t *testing.T) {
			require.NoError(t, redis.do("FLUSHALL"))
			want := 2.0
			if strings.Contains(p.name, "latch") || strings.Contains(p.name, "barrier") || strings.Contains(p.name, "attempt") {
				want = 1
			}
			runs, err := redis.scripts(p, 40)
			require.NoError(t, err)
			require.GreaterOrEqual(t, runs, want, "none of them does without")
			if p.name == "attempt at a spinlock that is held" {
				runs-- // a client asks a hundred times at once who holds it
			}
			require.Less(t, runs, want+1, "some ask again, or renew, on a slow machine")
		})
	}
}

// A lock costs more than two scripts that do nothing, and one that is handed over costs more than a free one.
func TestCountsInstructions(t *testing.T) {
	redistest.RequireValgrind(t)
	out := t.TempDir()
	require.NoError(t, keep(&Results{Machine: "a machine", Rows: []Row{{Scenario: "fleet", Title: "a fleet", Contender: "rlock"}}}, out))
	before, err := recorded(out)
	require.NoError(t, err)
	var some []pairs
	for _, p := range allPairs() {
		if p.name == "floor" || strings.Contains(p.name, "rlock") {
			some = append(some, p)
		}
	}
	done := 0
	const n = 60 // so many that what the server does besides, for as long as it runs, counts little
	before.Instructions, err = countAll(t.Context(), some, n, func() { done++ })
	require.NoError(t, err)
	require.NoError(t, keep(before, out))
	require.Contains(t, report(t, out), "## a fleet", "what another run has found is left")

	r, err := recorded(out)
	require.NoError(t, err)
	require.Equal(t, 2*n, r.Instructions.Pairs)
	require.NotEmpty(t, r.Instructions.Redis)
	require.NotEmpty(t, r.Instructions.Valgrind)
	counts := map[string]float64{}
	for _, row := range r.Instructions.Rows {
		require.Empty(t, row.Error, row.Contender)
		require.GreaterOrEqual(t, row.Scripts, 2.0, row.Contender)
		require.Less(t, row.Scripts, 3.0, "some ask again, or renew, on a slow machine: %s", row.Contender)
		counts[row.Contender] = row.Instructions
	}
	require.Len(t, counts, done)
	require.Greater(t, counts["floor"], 10_000.0)
	require.Greater(t, counts["rlock"], 2*counts["floor"])
	require.Greater(t, counts["fairlock between two clients"], 1.4*counts["rlock"], "each was granted from the queue")
	require.Less(t, counts["rlock in a cluster"], 1.35*counts["rlock"], "a slot at rest costs no care")
}

// A pair that fails is a row that says why. The others are counted.
func TestCountFails(t *testing.T) {
	redistest.RequireValgrind(t)
	r, err := countAll(t.Context(), []pairs{{name: "broken", open: func(string) (func(int) error, func(), error) { return nil, nil, os.ErrInvalid }}}, 1, func() {})
	require.NoError(t, err)
	require.Equal(t, []Count{{Contender: "broken", Error: os.ErrInvalid.Error()}}, r.Rows)
}
