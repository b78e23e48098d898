package robustness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Violation is something that must not be.
type Violation struct{ Kind, Text string }

// Outcome is what an episode has come to.
type Outcome struct {
	Plan       Plan
	Windows    []Window
	Violations []Violation
	Tally      Tally
	Began      int64
	Took       time.Duration // with its servers and its validation
	Stall      time.Duration // of the worker that was not run for the longest time, where nothing was done to it
	Dir        string
}

// unavailable is the kind of a violation that a machine explains which stands still.
const unavailable = "unavailable"

// answers is the shortest command timeout of a client.
const answers = 700 * time.Millisecond

// Stalled reports whether the machine stood still for so long that commands were not answered, and whether
// that is all that is wrong.
func (o Outcome) Stalled() bool {
	for _, v := range o.Violations {
		if v.Kind != unavailable {
			return false
		}
	}
	return len(o.Violations) > 0 && o.Stall > answers/2
}

// Play runs an episode and judges it. Its files are in a folder below dir.
func Play(t testing.TB, plan Plan, dir string) Outcome {
	t.Helper()
	o := Outcome{Plan: plan, Began: time.Now().UnixNano(), Dir: filepath.Join(dir, fmt.Sprint(plan.Episode))}
	makeRoom(t, o.Dir)
	s := newScene(t, plan, o.Dir)
	for n := range plan.Workers {
		s.crew.hire(t, n)
	}
	o.Windows = s.fail()
	s.crew.words.Stop().Store(1)
	o.Violations = s.crew.finish(plan.Patience() + 20*time.Second)
	ended := len(o.Violations) > 0 || s.crew.tells()
	for n := range plan.Workers {
		o.Stall = max(o.Stall, time.Duration(s.crew.words.Stall(n).Load()))
	}
	h := readHistory(t, s.crew, o)
	o.Violations = append(o.Violations, s.crew.told()...)
	o.Violations = append(o.Violations, h.judge()...)
	if !ended {
		o.Violations = append(o.Violations, s.leftovers(h)...)
	}
	o.Tally = h.tally
	h.Violations = o.Violations
	if len(o.Violations) > 0 {
		h.keep(t)
		for n, m := range s.monitors {
			m.keep(t, o.Dir, n)
		}
	}
	h.close()
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

// fail lets things fail until the episode is over, and returns when they did.
func (s *scene) fail() (windows []Window) {
	rng := rngOf(s.plan.Seed, s.plan.Episode, 1<<40)
	until := time.Now().Add(s.plan.Lasts)
	for n := 0; ; n++ {
		pause := 150*time.Millisecond + time.Duration(rng.IntN(700))*time.Millisecond
		if n == 0 {
			pause = 300 * time.Millisecond
		}
		if len(s.plan.Faults) == 0 || time.Now().Add(pause).After(until) {
			s.pause(time.Until(until))
			return windows
		}
		if !s.pause(pause) {
			return windows
		}
		f := faultNamed(s.plan.Faults[rng.IntN(len(s.plan.Faults))])
		s.about = -1
		w := Window{Name: f.Name, Begin: time.Now().UnixNano(), Excuses: f.Excuses}
		end := f.Begin(s, rng)
		w.Object = s.about
		if f.Lasts[1] > 0 {
			<-time.After(f.Lasts[0] + time.Duration(rng.Int64N(int64(f.Lasts[1]-f.Lasts[0])+1)))
		}
		end()
		w.End = time.Now().UnixNano()
		windows = append(windows, w)
	}
}

// pause reports whether no worker has told of a violation for so long.
func (s *scene) pause(d time.Duration) bool {
	for until := time.Now().Add(d); time.Now().Before(until); {
		if s.crew.tells() {
			return false
		}
		<-time.After(min(20*time.Millisecond, time.Until(until)+1))
	}
	return true
}

// keys returns all keys of a server with their times to live.
func keys(ctx context.Context, c rueidis.Client) (map[string]int64, error) {
	names, err := c.Do(ctx, c.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for _, name := range names {
		ttl, err := c.Do(ctx, c.B().Pttl().Key(name).Build()).AsInt64()
		if err != nil {
			return nil, err
		}
		if ttl != -2 {
			all[name] = ttl
		}
	}
	return all, nil
}
