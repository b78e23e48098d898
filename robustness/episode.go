package robustness

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/robustness/faults"
	"github.com/latchkey-go/latchkey/robustness/judge"
	"github.com/latchkey-go/latchkey/robustness/plan"
)

// Outcome is what an episode has come to.
type Outcome struct {
	judge.Episode
	Violations []plan.Violation
	Tally      judge.Tally
	Took       time.Duration // with its servers and its validation
}

// Stalled reports whether the machine stood still for so long that commands were not answered, and whether
// that is all that is wrong.
func (o Outcome) Stalled() bool {
	for _, v := range o.Violations {
		if v.Kind != plan.Unavailable {
			return false
		}
	}
	return len(o.Violations) > 0 && o.Stall > plan.Answers/2
}

// Play runs an episode and judges it. Its files are in a folder below dir.
func Play(t testing.TB, p plan.Plan, dir string) Outcome {
	t.Helper()
	o := Outcome{Episode: judge.Episode{Plan: p, Began: time.Now().UnixNano(), Dir: filepath.Join(dir, fmt.Sprint(p.Episode))}}
	makeRoom(t, o.Dir)
	s := faults.NewScene(t, p, o.Dir)
	for n := range p.Workers {
		s.Crew.Hire(t, n)
	}
	o.Windows = s.Fail()
	s.Crew.Words.Stop().Store(1)
	o.Violations = s.Crew.Finish(p.Patience() + 20*time.Second)
	ended := len(o.Violations) > 0 || s.Crew.Tells()
	for n := range p.Workers {
		o.Stall = max(o.Stall, time.Duration(s.Crew.Words.Stall(n).Load()))
	}
	h := judge.Read(t, s.Crew.Processes(), o.Episode)
	o.Violations = append(o.Violations, s.Crew.Told()...)
	o.Violations = append(o.Violations, h.Judge()...)
	if !ended {
		o.Violations = append(o.Violations, leftovers(s, h)...)
	}
	o.Tally = h.Tally
	if len(o.Violations) > 0 {
		h.Keep(t, o.Violations)
		s.Keep(o.Dir)
	}
	h.Close()
	o.Took = time.Since(time.Unix(0, o.Began))
	return o
}

// makeRoom makes a folder anew. One in which an earlier run has kept what it found is named otherwise: it may
// not be found again.
func makeRoom(t testing.TB, dir string) {
	t.Helper()
	if found, err := os.Stat(filepath.Join(dir, "episode.json")); err == nil {
		require.NoError(t, os.Rename(dir, dir+"-"+found.ModTime().Format("150405.000")))
	}
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.MkdirAll(dir, 0o700))
}
