package robustness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// entry is a record with what its process became of.
type entry struct {
	*Record
	serial uint64
	killed int64 // when its process was; 0: it was not
	end    int64 // of a section: how long it was trusted, as far as is known
}

// newEntry returns a record of a process with how long its section was trusted. When the process was killed
// inside, that is until then, or until its lease was over.
func newEntry(r *Record, m *member) entry {
	e := entry{Record: r, serial: m.serial, killed: m.killed, end: r.End}
	if m.killed != 0 && r.Leaving == 0 && r.Free == 0 && r.Begin != 0 {
		e.end = max(r.End, min(m.doomed, r.Until))
	}
	return e
}

// history is what all processes of an episode wrote down.
type history struct {
	Outcome
	entries   []entry
	files     []*Witness
	tally     Tally
	excusable []Window // of faults, and of what workers did on purpose
}

func readHistory(t testing.TB, c *crew, o Outcome) *history {
	t.Helper()
	h := &history{Outcome: o, excusable: slices.Clone(o.Windows)}
	for _, m := range c.all {
		file, err := OpenWitness(witnessPath(o.Dir, m.serial))
		require.NoError(t, err)
		h.files = append(h.files, file)
		for _, r := range file.All() {
			h.entries = append(h.entries, newEntry(r, m))
		}
	}
	slices.SortFunc(h.entries, func(a, b entry) int { return int(a.Asked - b.Asked) })
	for _, e := range h.entries {
		end := e.Begin
		if end == 0 {
			end = max(e.killed, e.Asked)
		}
		switch e.Kind {
		case Taking: // the holder hears of it at its next renewal at the latest, or its lease ends
			h.excusable = append(h.excusable, Window{
				"ForceUnlock", e.Object, e.Asked, end, Excuse{Overlap: longestLease, Order: true, Recovers: asksAgain + settles},
			})
		case Closing: // what is held then stays for its lease
			h.excusable = append(h.excusable, Window{
				"close", -1, e.Asked, end, Excuse{Order: true, Recovers: longestLease + asksAgain},
			})
		}
	}
	return h
}

func (h *history) close() {
	for _, f := range h.files {
		f.Close()
	}
}

// excused returns the window that excuses something of an object at a moment.
func (h *history) excused(object int64, at int64, until func(Excuse) time.Duration) bool {
	for _, w := range h.excusable {
		if (w.Object == -1 || w.Object == object) && at >= w.Begin {
			if d := until(w.Excuses); d > 0 && at <= w.End+d.Nanoseconds() {
				return true
			}
		}
	}
	return false
}

func overlap(e Excuse) time.Duration { return e.Overlap }

// of returns the entries of a kind and an object.
func (h *history) of(kind Kind, object int) (some []entry) {
	for _, e := range h.entries {
		if e.Kind == kind && e.Object == int64(object) {
			some = append(some, e)
		}
	}
	return some
}

// keep writes down what is needed to look into violations.
func (h *history) keep(t testing.TB) {
	t.Helper()
	text, err := json.MarshalIndent(struct {
		Plan       Plan
		Windows    []Window
		Violations []Violation
	}{h.Plan, h.excusable, h.Violations}, "", "  ")
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
