package latchkeytest

import (
	"fmt"
	"strings"
)

// step is a lock that was asked for, or is held.
type step struct {
	name, class string
	place       string // where in the program
}

// edge says that one lock was asked for inside a hold of another.
type edge struct{ outer, inner step }

func (e edge) String() string {
	return fmt.Sprintf("%q at %s, inside %q of %s", e.inner.name, e.inner.place, e.outer.name, e.outer.place)
}

// graph has the orders that were seen, each with where it was seen first: by what is outside, then by what is
// inside. Two that contradict each other are never in it together.
type graph map[string]map[string]edge

// add adds an order, unless it contradicts those that are there. Then it returns these: a way from inner to
// outer.
func (g graph) add(outer, inner string, e edge) (contradicts []edge) {
	if _, known := g[outer][inner]; known {
		return nil
	}
	if way := g.way(inner, outer); way != nil {
		return way
	}
	if g[outer] == nil {
		g[outer] = map[string]edge{}
	}
	g[outer][inner] = e
	return nil
}

// way returns the shortest way from one to another; nil if there is none.
func (g graph) way(from, to string) []edge {
	type stop struct {
		at   string
		ways []edge
	}
	seen := map[string]bool{from: true}
	for open := []stop{{at: from}}; len(open) > 0; open = open[1:] {
		for next, e := range g[open[0].at] {
			ways := append(append([]edge(nil), open[0].ways...), e)
			if next == to {
				return ways
			}
			if !seen[next] {
				seen[next] = true
				open = append(open, stop{next, ways})
			}
		}
	}
	return nil
}

// rules are the orders of classes, and of names inside of each class.
type rules struct {
	classes  graph
	names    graph
	reported map[[2]string]bool // pairs of classes, or of names, whose contradiction was told
}

func newRules() rules {
	return rules{classes: graph{}, names: graph{}, reported: map[[2]string]bool{}}
}

// note notes that inner was asked for inside outer. It returns a report when that contradicts what was seen
// before, once for each pair.
func (r rules) note(outer, inner step) (report string) {
	if outer.name == inner.name { // it waits for itself, or shares: that is no order
		return ""
	}
	g, from, to := r.classes, outer.class, inner.class
	if from == to {
		g, from, to = r.names, outer.name, inner.name
	}
	e := edge{outer, inner}
	way := g.add(from, to, e)
	if way == nil || r.reported[[2]string{from, to}] {
		return ""
	}
	r.reported[[2]string{from, to}] = true
	var lines strings.Builder
	fmt.Fprintf(&lines, "latchkeytest: locks are taken in orders that contradict each other, and can wait for each other for ever:")
	for _, seen := range append([]edge{e}, way...) {
		from, to := seen.outer.class, seen.inner.class
		if from == to {
			from, to = seen.outer.name, seen.inner.name
		}
		fmt.Fprintf(&lines, "\n\t%s, then %s: %v", from, to, seen)
	}
	return lines.String()
}
