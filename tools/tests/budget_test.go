package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A package is red when it spends half as much again as its budget, as the others do. A slow machine is no reason.
func TestBudget(t *testing.T) {
	name := filepath.Join(t.TempDir(), "budget")
	spent := func(factor float64, b float64) map[string]time.Duration {
		all := map[string]time.Duration{"tiny": time.Second}
		for p, seconds := range map[string]float64{"a": 10, "b": b, "c": 30, "d": 5} {
			all[p] = time.Duration(factor * seconds * float64(time.Second))
		}
		return all
	}
	green, err := budgetFile{name, true}.judge(spent(1, 20), &bytes.Buffer{})
	require.NoError(t, err)
	require.True(t, green)
	text, err := os.ReadFile(name) //nolint:gosec // its own
	require.NoError(t, err)
	require.Equal(t, "a 10s\nb 20s\nc 30s\nd 5s\n", string(text))
	for _, c := range []struct {
		factor, b float64
		green     bool
	}{{1, 20, true}, {1, 29, true}, {1, 31, false}, {3, 20, true}, {3, 29, true}, {3, 31, false}} {
		var out bytes.Buffer
		green, err := budgetFile{name, false}.judge(spent(c.factor, c.b), &out)
		require.NoError(t, err)
		require.Equal(t, c.green, green, "%v: %s", c, &out)
		require.Equal(t, !c.green, strings.Contains(out.String(), "red: b spent"))
	}
	more := spent(1, 20)
	more["new"] = 5 * time.Second
	green, err = budgetFile{name, false}.judge(more, &bytes.Buffer{})
	require.NoError(t, err)
	require.False(t, green, "a package without a budget has a small one")
	green, err = budgetFile{name, false}.judge(nil, &bytes.Buffer{})
	require.NoError(t, err)
	require.True(t, green)
	green, err = budgetFile{}.judge(more, &bytes.Buffer{})
	require.NoError(t, err)
	require.True(t, green, "nothing is judged")
	require.NoError(t, os.WriteFile(name, []byte("a much\n"), 0o600))
	for _, b := range []budgetFile{{name, false}, {name + "x", false}} {
		green, err = b.judge(more, &bytes.Buffer{})
		require.Error(t, err)
		require.False(t, green)
	}
}
