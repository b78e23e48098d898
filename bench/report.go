package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// column is a figure of a table.
type column struct {
	title string
	cell  func(row *Row, base *base) string
}

// base is what the rows of a scenario are compared with.
type base struct {
	floor, peer *Row // peer is the best of those that are neither ours nor a floor
	passes      *Row // the best of those at passing the lock to another process
}

func baseOf(rows []*Row) (b base) {
	for _, r := range rows {
		l, err := libraryOf(r.Contender)
		switch {
		case len(r.Rounds) == 0:
		case err != nil && r.Contender == "ping-pong", err == nil && (l.floor || l.local):
			b.floor = r
		case err == nil && !l.ours || r.Contender == "redisson" || r.Contender == "no lock":
			if b.peer == nil || r.median(rate) > b.peer.median(rate) {
				b.peer = r
			}
			if d := r.median(handoffTime); d > 0 && (b.passes == nil || d < b.passes.median(handoffTime)) {
				b.passes = r
			}
		}
	}
	return b
}

func number(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 10_000:
		return group(int64(x + 0.5))
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
}

// group puts commas between thousands.
func group(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// micros is a time in µs, in the unit that suits it.
func micros(us float64) string {
	switch {
	case us == 0:
		return ""
	case us >= 1e6:
		return number(us/1e6) + " s"
	case us >= 1000:
		return number(us/1000) + " ms"
	default:
		return number(us) + " µs"
	}
}

func figure(title string, of func(Round) float64, format func(float64) string) column {
	return column{title, func(row *Row, _ *base) string { return format(row.median(of)) }}
}

func ratio(title string, of func(Round) float64, to func(*base) *Row) column {
	return column{title, func(row *Row, b *base) string {
		other := to(b)
		if other == nil || other == row || other.median(of) == 0 {
			return ""
		}
		return number(row.median(of) / other.median(of))
	}}
}

func median(r Round) float64 { return r.P50 }

func handoffTime(r Round) float64 { return r.HandoffP50 }

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 0, 64) + " %" }

var (
	toFloor = ratio("compared with the floor", rate, func(b *base) *Row { return b.floor })
	toPeer  = ratio("compared with the best other", rate, func(b *base) *Row { return b.peer })
	spread  = column{"spread", func(row *Row, _ *base) string { return percent(row.spread(rate)) }}
	usual   = []column{
		figure("per second", rate, number), toFloor, toPeer,
		figure("wait p50", median, micros),
		figure("wait p99", func(r Round) float64 { return r.P99 }, micros),
		figure("longest wait", func(r Round) float64 { return r.Longest }, micros),
		figure("commands", func(r Round) float64 { return r.Commands }, number),
		figure("time in Redis", func(r Round) float64 { return r.RedisTime }, micros),
		figure("bytes to and from Redis", func(r Round) float64 { return r.NetBytes }, number),
		figure("client cores", func(r Round) float64 { return r.ClientCPU }, number),
		figure("Redis cores", func(r Round) float64 { return r.RedisCPU }, number),
		figure("allocations", func(r Round) float64 { return r.Allocs }, number),
		figure("bytes allocated", func(r Round) float64 { return r.Bytes }, number),
	}
	fairness = figure("luckiest / unluckiest process", func(r Round) float64 { return r.Fairness }, number)
	overlaps = figure("overlaps", func(r Round) float64 { return float64(r.Overlaps) }, number)
	together = figure("readers inside together", func(r Round) float64 { return float64(r.Together) }, number)
	ofWrites = []column{
		figure("write wait p50", func(r Round) float64 { return r.WriteP50 }, micros),
		figure("write wait p99", func(r Round) float64 { return r.WriteP99 }, micros),
		figure("longest write wait", func(r Round) float64 { return r.LongestWrite }, micros),
	}
	handoff = figure("hand-off p50", handoffTime, micros)
)

// columnsOf are those of a scenario's table.
func columnsOf(name string) []column {
	switch name {
	case "idle":
		return []column{
			figure("commands per second", func(r Round) float64 { return r.CommandRate }, number),
			figure("memory per waiter, bytes", extra("bytes per waiter"), number),
			figure("client cores", func(r Round) float64 { return r.ClientCPU }, number),
		}
	case "held":
		return []column{
			figure("time to lock all, s", extra("locked in s"), number),
			figure("commands per second", func(r Round) float64 { return r.CommandRate }, number),
			figure("client cores", func(r Round) float64 { return r.ClientCPU }, number),
			figure("Redis cores", func(r Round) float64 { return r.RedisCPU }, number),
		}
	case "market":
		return []column{
			figure("listed and bought per second", rate, number), ratio("compared with no lock", rate, func(b *base) *Row { return b.peer }),
			figure("listed", extra("listed"), number), figure("bought", extra("bought"), number),
			figure("purchase retries", extra("purchase retries"), number), figure("listing retries", extra("listing retries"), number),
			figure("mean wait per purchase", extra("mean wait µs"), micros),
			figure("sold twice", extra("bought what was gone"), number), spread,
		}
	case "hand-off":
		return append([]column{
			handoff, ratio("compared with the floor", handoffTime, func(b *base) *Row { return b.floor }),
			ratio("compared with the best other", handoffTime, func(b *base) *Row { return b.passes }), fairness, overlaps,
		}, append(usual[:1:1], usual[3:7:7]...)...)
	case "turns": // how often they come to it is a matter of who looks how often whose turn it is
		return append([]column{
			usual[3], ratio("compared with the floor", median, func(b *base) *Row { return b.floor }),
		}, append(usual[4:len(usual):len(usual)], fairness, overlaps)...)
	case "readers", "readers 1 ms":
		return slices.Concat(usual[:1], usual[2:], []column{together, spread})
	case "read-write", "read-write 1 ms":
		return slices.Concat(usual[:1], usual[2:6], ofWrites, usual[6:], []column{together, overlaps, spread})
	case "fleet", "fleet 1 ms":
		return append(usual[:len(usual):len(usual)], fairness, overlaps, spread)
	case "fleet unequal":
		return append(usual[:len(usual):len(usual)], fairness, figure("holds of those with 10 ms", extra(longHolds), percent),
			figure("time of those with 10 ms", extra(longTime), percent), overlaps, spread)
	case "one process", "uncontended":
		return append(usual[:len(usual):len(usual)], overlaps, spread)
	default:
		return append(usual[:len(usual):len(usual)], spread)
	}
}

// failure is the cell that says why there is no result.
func failure(why string) string { return "failed: " + strings.ReplaceAll(why, "|", "/") }

// markdown writes one table.
func markdown(header table.Row, rows []table.Row) string {
	w := table.NewWriter()
	w.AppendHeader(header)
	w.AppendRows(rows)
	return w.RenderMarkdown() + "\n"
}

func tableOf(rows []*Row, columns []column) string {
	b := baseOf(rows)
	header := table.Row{""}
	for _, c := range columns {
		header = append(header, c.title)
	}
	var lines []table.Row
	for _, r := range rows {
		line := table.Row{r.Contender}
		for _, c := range columns {
			switch {
			case r.Error != "" && len(line) == 1:
				line = append(line, failure(r.Error))
			case r.Error != "":
				line = append(line, "")
			default:
				line = append(line, c.cell(r, &b))
			}
		}
		lines = append(lines, line)
	}
	return markdown(header, lines)
}

// series is the table of scenarios that differ in one number: the commands per acquisition.
func series(rows []*Row) string {
	var xs []int
	cells := map[string]map[int]string{}
	var names []string
	for _, r := range rows {
		if !slices.Contains(xs, r.X) {
			xs = append(xs, r.X)
		}
		if cells[r.Contender] == nil {
			cells[r.Contender] = map[int]string{}
			names = append(names, r.Contender)
		}
		cells[r.Contender][r.X] = "failed"
		switch {
		case len(r.Rounds) == 0:
		case r.median(rate) == 0:
			cells[r.Contender][r.X] = "none acquired"
		default:
			cells[r.Contender][r.X] = number(r.median(func(r Round) float64 { return r.Commands }))
		}
	}
	header := table.Row{""}
	for _, x := range xs {
		header = append(header, group(int64(x)))
	}
	var lines []table.Row
	for _, name := range names {
		line := table.Row{name}
		for _, x := range xs {
			line = append(line, cells[name][x])
		}
		lines = append(lines, line)
	}
	text := markdown(header, lines)
	for _, r := range rows {
		if r.Error != "" {
			text += fmt.Sprintf("\nFailed: %s at %d: %s\n", r.Contender, r.X, r.Error)
		}
	}
	return text
}

// render writes the tables and charts.
func render(r *Results, out string) error {
	var b strings.Builder
	b.WriteString("# Side by side\n")
	if len(r.Rows) > 0 {
		b.WriteString(r.sideBySide())
	}
	if r.Instructions != nil {
		b.WriteString(r.Instructions.section())
		if len(r.OnOthers) > 0 {
			b.WriteString(r.onOthers())
		}
	}
	if err := os.WriteFile(filepath.Join(out, "results.md"), []byte(b.String()), 0o644); err != nil { //nolint:gosec // to be read by all
		return err
	}
	return charts(r, out)
}

// sideBySide are the tables of the scenarios.
func (r *Results) sideBySide() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s; %s without persistence, on loopback; %s; %s. Repeat with `%s`.\n\n", r.Machine, r.Redis, r.Go, r.When, r.Command)
	b.WriteString("All figures are medians of interleaved rounds. A comparison is a ratio. The spread is the best round less the worst, as a share\n" +
		"of the median.\n" +
		"Commands, time in Redis, bytes and allocations are per acquisition, its release included. An overlap is an acquisition while\n" +
		"somebody else was inside: the processes see it in memory that they share. The longest wait may be one that had not ended.\n" +
		"The floor is the least that the same work can cost: two scripts that do nothing, or for a hand-off a message from one process\n" +
		"to the other. The one with pauses is sent as seldom as the lock changes hands: processors that sleep meanwhile answer later.\n" +
		"`redisson` is Redisson's protocol, written plainly; `" + realRedisson + "` is Redisson itself, in one Java process that was warmed up, with a\n" +
		"client for each process of the others, whose allocations are not counted. The budget of permits is 300 holds and 50 ms.\n" +
		"All leases are 5 s. So is rueidislock's TryNextAfter: by default it is 20 ms, and a caller whose command takes\n" +
		"longer waits for ever if nobody else has the lock.\n\n")
	if slices.ContainsFunc(r.Rows, func(row Row) bool { l, err := libraryOf(row.Contender); return err == nil && l.local }) {
		b.WriteString("Inside one process the floor is a semaphore of one from `golang.org/x/sync`, which needs no Redis.\n\n")
	}
	for _, name := range sortedKeys(r.Versions) {
		fmt.Fprintf(&b, "- `%s` %s\n", name, r.Versions[name])
	}
	for _, name := range r.names() {
		rows := r.rows(name)
		fmt.Fprintf(&b, "\n## %s\n\n", rows[0].Title)
		switch rows[0].Series {
		case "":
			b.WriteString(tableOf(rows, columnsOf(name)))
		case "spin":
			for _, x := range []int{1, 8, 64} {
				some := slices.DeleteFunc(slices.Clone(rows), func(r *Row) bool { return r.X != x })
				if len(some) > 0 {
					fmt.Fprintf(&b, "Waiting processes: %d.\n\n%s\n", x, tableOf(some, columnsOf("fleet")))
				}
			}
		case "market":
			for size := range slices.Values([]int{11, 51, 55}) {
				some := slices.DeleteFunc(slices.Clone(rows), func(r *Row) bool { return r.X != size })
				if len(some) > 0 {
					fmt.Fprintf(&b, "Listers: %d. Buyers: %d.\n\n%s\n", size/10, size%10, tableOf(some, columnsOf(name)))
				}
			}
		default:
			b.WriteString(series(rows))
		}
	}
	return b.String()
}
