package robustness

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/robustness/judge"
	"github.com/latchkey-go/latchkey/robustness/plan"
)

// What a run has kept is still there when its episode runs again, and what it has not kept is not.
func TestWhatWasFoundIsKept(t *testing.T) {
	all := t.TempDir()
	dir := filepath.Join(all, "5")
	kept := func() int {
		names, err := os.ReadDir(all)
		require.NoError(t, err)
		return len(names)
	}
	makeRoom(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "0.log"), nil, 0o600))
	makeRoom(t, dir)
	require.NoFileExists(t, filepath.Join(dir, "0.log"))
	require.Equal(t, 1, kept())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "episode.json"), nil, 0o600))
	makeRoom(t, dir)
	require.NoFileExists(t, filepath.Join(dir, "episode.json"))
	require.Equal(t, 2, kept())
}

// A machine that stood still explains commands without an answer, and nothing else.
func TestStalled(t *testing.T) {
	silent, wrong := plan.Violation{Kind: plan.Unavailable}, plan.Violation{Kind: "exclusion"}
	for name, test := range map[string]struct {
		stall time.Duration
		found []plan.Violation
		want  bool
	}{
		"for long enough":      {plan.Answers, []plan.Violation{silent, silent}, true},
		"not for long enough":  {plan.Answers / 3, []plan.Violation{silent}, false},
		"more is wrong":        {plan.Answers, []plan.Violation{silent, wrong}, false},
		"and nothing is wrong": {plan.Answers, nil, false},
	} {
		require.Equal(t, test.want, Outcome{Episode: judge.Episode{Stall: test.stall}, Violations: test.found}.Stalled(), name)
	}
}
