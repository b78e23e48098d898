package robustness

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/test/redistest"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/traffic"
)

func TestMain(m *testing.M) {
	traffic.Work()
	redistest.Main(m)
}

// setting reads a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// Random programs run for a while, and what they wrote down has no violations. The seed is printed.
func TestRobustness(t *testing.T) {
	redistest.RequireCompiler(t)
	seed := setting(t, "ROBUSTNESS_SEED", rand.Uint64N(1_000_000))
	lasts := time.Duration(setting(t, "ROBUSTNESS_SECONDS", 20)) * time.Second
	first := setting(t, "ROBUSTNESS_EPISODE", 0)
	dir := os.Getenv("ROBUSTNESS_DIR")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "latchkey-robustness")
	}
	dir = filepath.Join(dir, fmt.Sprint(seed))
	t.Logf("seed %d, files in %s", seed, dir)
	all := Totals{}
	focus := Focus{Topology: plan.Topology(os.Getenv("ROBUSTNESS_TOPOLOGY"))}
	if names := os.Getenv("ROBUSTNESS_FAULTS"); names != "" {
		focus.Faults = strings.Split(names, ",")
	}
	violations := 0
	began := time.Now()
	for n := first; time.Since(began) < lasts; n++ {
		var o Outcome
		skipped := false
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			o = Play(t, NewPlan(seed, n, focus), dir)
			fmt.Println(o)
			if o.Stalled() {
				fmt.Printf("stalled: episode %d is played again\n", n)
				o = Play(t, o.Plan, dir)
				fmt.Println(o)
			}
			if len(o.Violations) > 0 {
				t.Fail()
				return
			}
			require.NoError(t, os.RemoveAll(o.Dir))
		})
		if skipped && focus.Topology == "" {
			continue // this server has no such topology, as Redis 6.2 no cluster
		}
		if o.Dir == "" {
			break // the harness itself failed, or there is nothing else to play
		}
		all.Add(o)
		violations += len(o.Violations)
		if violations > 0 {
			fmt.Printf("seen after %.1f s\n", time.Since(began).Seconds())
			break
		}
	}
	fmt.Printf("seed %d: %v\n", seed, all)
}
