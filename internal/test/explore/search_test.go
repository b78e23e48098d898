package explore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// search visits the states of a scene.
type search struct {
	scene
	random *rand.Rand

	known   map[[2]uint64]bool
	visited []visit // how each known state was reached
	open    []visit // steps that were not taken

	runs, ends, diverged int
	longest              int
	broken               []string     // what is not true, and how that came
	found                *atomic.Bool // another search has found something: the first is enough
}

// visit is a step from a state: its place in visited; -1: the start.
type visit struct {
	from int
	step string
}

// explore searches until nothing is open, something is broken, or the time is over.
func (s *search) explore(t *testing.T, d time.Duration) {
	for range 20 { // the scripts are sent in full once
		s.known = map[[2]uint64]bool{}
		if s.once(t, visit{from: -1}); len(s.broken) > 0 {
			return
		}
	}
	*s = search{scene: s.scene, random: s.random, found: s.found, known: map[[2]uint64]bool{}, open: []visit{{from: -1}}}
	for end := time.Now().Add(d); len(s.open) > 0 && !s.found.Load() && time.Now().Before(end); {
		n := s.random.IntN(len(s.open))
		next := s.open[n]
		s.open[n] = s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		s.once(t, next)
	}
}

// path returns the steps to a visit from the start.
func (s *search) path(v visit) (path []string) {
	for ; v.from >= 0; v = s.visited[v.from] {
		path = append(path, v.step)
	}
	slices.Reverse(path)
	return path
}

// once makes a visit, and goes on from there to states that were not known.
func (s *search) once(t *testing.T, v visit) {
	s.runs++
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, &s.scene)
		defer r.stop()
		for _, name := range s.path(v) {
			steps := r.steps()
			n := slices.IndexFunc(steps, func(one step) bool { return one.name == name })
			if n < 0 {
				s.diverged++
				return
			}
			r.take(steps[n])
		}
		for len(r.broken) == 0 && s.isNew(r) {
			at := len(s.visited)
			s.visited = append(s.visited, v)
			steps := r.steps()
			if len(steps) == 0 {
				s.ends++
				r.ends()
				break
			}
			n := s.choose(steps)
			for i, other := range steps {
				if i != n {
					s.open = append(s.open, visit{at, other.name})
				}
			}
			v = visit{at, steps[n].name}
			r.take(steps[n])
		}
		s.longest = max(s.longest, len(r.path))
		if len(r.broken) > 0 && len(s.broken) == 0 {
			s.broken = append([]string{strings.Join(slices.Compact(r.broken), "\n")}, r.path...)
			s.found.Store(true)
		}
	})
}

// choose returns the step with which a path goes on: a fault only now and then, so that they come late as
// well.
func (s *search) choose(steps []step) int {
	var well []int
	for n, one := range steps {
		if one.fault == "" {
			well = append(well, n)
		}
	}
	if len(well) == 0 || s.random.IntN(6) == 0 {
		return s.random.IntN(len(steps))
	}
	return well[s.random.IntN(len(well))]
}

// isNew reports whether a run is at a state that was not known, and makes it known.
func (s *search) isNew(r *run) bool {
	mark := r.print()
	known := s.known[mark]
	s.known[mark] = true
	return !known
}

func (s *search) String() string {
	return fmt.Sprintf("%d states, %d steps not taken, %d runs (%d to the end, %d diverged), %d steps at most",
		len(s.visited), len(s.open), s.runs, s.ends, s.diverged, s.longest)
}
