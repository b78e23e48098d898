package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/template"
	"time"
)

// bars is a chart that needs no axis: a bar for each contender of one scenario, from zero, with its
// number. It has the colors of the reader's page, light or dark.
var bars = template.Must(template.New("bars").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {{.Height}}" width="760pt" height="{{.Height}}pt" role="img" aria-label="{{.Title}}">
<style>
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.ours { fill: #d55e00 } .theirs { fill: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .ours { fill: #f2813a } .theirs { fill: #768390 } }
</style>
<text x="0" y="18" font-weight="600">{{.Title}}</text>
{{range .Bars}}<text x="0" y="{{.Text}}">{{.Name}}</text>
<rect class="{{if .Ours}}ours{{else}}theirs{{end}}" x="150" y="{{.Y}}" width="{{.Width}}" height="18" rx="2"/>
<text x="{{.End}}" y="{{.Text}}">{{.Number}}</text>
{{end}}</svg>
`))

type bar struct {
	Name, Number string
	Ours         bool
	Y, Text      int
	Width, End   string
}

// barsChart draws the longest waits of the scenario fleet, the shortest first.
func barsChart(r *Results, out string) (err error) {
	const left, room, line = 150.0, 540.0, 28
	rows := r.rows("fleet")
	slices.SortStableFunc(rows, func(a, b *Row) int { return cmp.Compare(a.median(longest), b.median(longest)) })
	most := 0.0
	for _, row := range rows {
		most = max(most, row.median(longest))
	}
	if most == 0 {
		return nil
	}
	chart := struct {
		Title  string
		Height int
		Bars   []bar
	}{Title: "Longest wait of 64 goroutines in 8 processes for one lock, no work inside", Height: 40 + line*len(rows)}
	for i, row := range rows {
		name := row.Contender
		if name == "redisson" {
			name = "Redisson's protocol" // in Go
		}
		width := max(room*row.median(longest)/most, 2)
		y := 34 + line*i
		chart.Bars = append(chart.Bars, bar{
			Name: name, Number: spoken(row.median(longest)), Ours: slices.ContainsFunc(libraries, func(l library) bool { return l.name == row.Contender && l.ours }), Y: y, Text: y + 14,
			Width: decimals(width), End: decimals(left + width + 8),
		})
	}
	f, err := os.Create(filepath.Join(out, "bars.svg"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return bars.Execute(f, chart)
}

func longest(r Round) float64 { return r.Longest }

func decimals(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// spoken is a time, which is given in microseconds, in milliseconds or tenths of a second.
func spoken(us float64) string {
	d := time.Duration(us) * time.Microsecond
	if d >= 100*time.Millisecond {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 0, 64) + " ms"
}
