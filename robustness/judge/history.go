package judge

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/robustness/witness"
)

// Episode is what is known of an episode before it is judged.
type Episode struct {
	Plan    plan.Plan
	Windows []plan.Window
	Began   int64
	Stall   time.Duration // of the worker that was not run for the longest time, where nothing was done to it
	Dir     string
}

// entry is a record with what its process became of.
type entry struct {
	*witness.Record
	serial uint64
	killed int64 // when its process was; 0: it was not
	end    int64 // of a section: how long it was trusted, as far as is known
}

// newEntry returns a record of a process with how long its section was trusted. When the process was killed
// inside, that is until then, or until its lease was over.
func newEntry(r *witness.Record, p witness.Process) entry {
	e := entry{Record: r, serial: p.Serial, killed: p.Killed, end: r.End}
	if p.Killed != 0 && r.Leaving == 0 && r.Free == 0 && r.Begin != 0 {
		e.end = max(r.End, min(p.Doomed, r.Until))
	}
	return e
}

// History is what all processes of an episode wrote down.
type History struct {
	Episode
	entries   []entry
	files     []*witness.Witness
	Tally     Tally
	Excusable []plan.Window // of faults, and of what workers did on purpose
}

// Read reads what the processes of an episode wrote down.
func Read(t testing.TB, processes []witness.Process, of Episode) *History {
	t.Helper()
	h := &History{Episode: of, Excusable: slices.Clone(of.Windows)}
	for _, p := range processes {
		file, err := witness.Open(witness.Path(of.Dir, p.Serial))
		require.NoError(t, err)
		h.files = append(h.files, file)
		for _, r := range file.All() {
			h.entries = append(h.entries, newEntry(r, p))
		}
	}
	slices.SortFunc(h.entries, func(a, b entry) int { return int(a.Asked - b.Asked) })
	for _, e := range h.entries {
		end := e.Begin
		if end == 0 {
			end = max(e.killed, e.Asked)
		}
		switch e.Kind {
		case witness.Taking: // the holder hears of it at its next renewal at the latest, or its lease ends
			h.Excusable = append(h.Excusable, plan.Window{
				Name: "ForceUnlock", Object: e.Object, Begin: e.Asked, End: end,
				Excuses: plan.Excuse{Overlap: plan.LongestLease, Order: true, Recovers: plan.AsksAgain + plan.Settles},
			})
		case witness.Closing: // what is held then stays for its lease
			h.Excusable = append(h.Excusable, plan.Window{
				Name: "close", Object: -1, Begin: e.Asked, End: end,
				Excuses: plan.Excuse{Order: true, Recovers: plan.LongestLease + plan.AsksAgain},
			})
		}
	}
	return h
}

// Close unmaps the files of the witnesses.
func (h *History) Close() {
	for _, f := range h.files {
		f.Close()
	}
}

// excused returns the window that excuses something of an object at a moment.
func (h *History) excused(object int64, at int64, until func(plan.Excuse) time.Duration) bool {
	for _, w := range h.Excusable {
		if (w.Object == -1 || w.Object == object) && at >= w.Begin {
			if d := until(w.Excuses); d > 0 && at <= w.End+d.Nanoseconds() {
				return true
			}
		}
	}
	return false
}

func overlap(e plan.Excuse) time.Duration { return e.Overlap }

// of returns the entries of a kind and an object.
func (h *History) of(kind witness.Kind, object int) (some []entry) {
	for _, e := range h.entries {
		if e.Kind == kind && e.Object == int64(object) {
			some = append(some, e)
		}
	}
	return some
}

// WasSet reports whether a capacity was asked for of an object.
func (h *History) WasSet(o plan.Object) bool {
	return slices.ContainsFunc(h.entries, func(e entry) bool { return e.Kind == witness.Setting && e.Object == int64(o.Index) })
}

// Keep writes down what is needed to look into violations.
func (h *History) Keep(t testing.TB, violations []plan.Violation) {
	t.Helper()
	text, err := json.MarshalIndent(struct {
		Plan       plan.Plan
		Windows    []plan.Window
		Violations []plan.Violation
	}{h.Plan, h.Excusable, violations}, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(h.Dir, "episode.json"), text, 0o600))
	file, err := os.Create(filepath.Join(h.Dir, "history.txt"))
	require.NoError(t, err)
	defer func() { _ = file.Close() }() // for people
	for _, e := range h.entries {
		_, _ = fmt.Fprintf(file, "worker %d %s\n", e.serial, e.describe(h.Began))
	}
}

// describe is the entry in milliseconds since the episode began.
func (e entry) describe(zero int64) string {
	ms := func(ns int64) string {
		if ns <= 0 {
			return fmt.Sprint(ns)
		}
		return fmt.Sprintf("%.3f", float64(ns-zero)/1e6)
	}
	return fmt.Sprintf("worker %d client %d kind %d object %d mode %d n %d asked %s queued %s begin %s end %s free %s token %d sequence %d result %d extra %d",
		e.serial, e.Client, e.Kind, e.Object, e.Mode, e.N, ms(e.Asked), ms(e.Queued), ms(e.Begin), ms(e.end), ms(e.Free), e.Token, e.Sequence, e.Result, e.Extra)
}
