package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/latchkey-go/latchkey/internal/look"
)

// column is one of the columns of a row, and how rows are sorted by it.
type column struct {
	title   string
	text    func(look.Row) string
	compare func(a, b look.Row) int // the first one comes first; nil: by the text
}

// whole is a duration in whole seconds; empty for none.
func whole(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.Round(time.Second).String()
}

var columns = []column{
	{"wait", func(r look.Row) string { return whole(r.Wait) }, func(a, b look.Row) int { return cmp.Compare(b.Wait, a.Wait) }},
	{"waiting", func(r look.Row) string { return number(int64(r.Waiting)) }, func(a, b look.Row) int { return cmp.Compare(b.Waiting, a.Waiting) }},
	{"hand-offs/s", func(r look.Row) string {
		if r.HandOffs() == 0 {
			return ""
		}
		return fmt.Sprintf("%.1f", r.HandOffs())
	}, func(a, b look.Row) int { return cmp.Compare(b.HandOffs(), a.HandOffs()) }},
	{"held", func(r look.Row) string { return whole(r.Held) }, func(a, b look.Row) int { return cmp.Compare(b.Held, a.Held) }},
	{"name", func(r look.Row) string { return plainText(string(r.Name)) }, nil},
	{"kind", func(r look.Row) string { return string(r.Kind) }, nil},
	{"holder", func(r look.Row) string {
		switch p := r.First(); {
		case r.Error != "":
			return r.Error.String()
		case r.State != "":
			return r.State
		case p.Label != "":
			return p.Label.String() + r.More()
		default:
			return p.Owner.String() + r.More()
		}
	}, nil},
	{"host", func(r look.Row) string { return r.First().Host.String() }, nil},
	{"pid", func(r look.Row) string { return number(int64(r.First().PID)) }, nil},
	{"note", func(r look.Row) string { return r.Note().String() }, nil},
}

// order is by which column rows are sorted.
type order int

const byLongestWait order = 0

// sort sorts rows by the column, and equal ones by the number that wait and by name.
func (o order) sort(rows []look.Row) {
	slices.SortStableFunc(rows, func(a, b look.Row) int {
		compare := columns[o].compare
		if compare == nil {
			compare = func(a, b look.Row) int { return cmp.Compare(columns[o].text(a), columns[o].text(b)) }
		}
		return cmp.Or(compare(a, b), cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Name, b.Name))
	})
}

func headerRow() (header table.Row) {
	for _, c := range columns {
		header = append(header, c.title)
	}
	return header
}

func tableRow(r look.Row) (cells table.Row) {
	for _, c := range columns {
		cells = append(cells, c.text(r))
	}
	return cells
}

// cells are the columns of a row.
func cells(r look.Row) (cells []string) {
	for _, c := range columns {
		cells = append(cells, c.text(r))
	}
	return cells
}
