package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// Every text of a chart ends inside it, also in a font that is wider than the one it names: of those in
// docs/appendix/bench, and of those that are drawn now of the same results.
func TestChartsHaveRoomForTheirTexts(t *testing.T) {
	const docs = "../docs/appendix/bench"
	results, err := recorded(docs)
	require.NoError(t, err)
	drawn := t.TempDir()
	require.NoError(t, charts(results, drawn))
	for _, folder := range []string{docs, drawn} {
		files, err := filepath.Glob(filepath.Join(folder, "[^b]*.svg"))
		require.NoError(t, err)
		require.Len(t, files, 5)
		for _, file := range files {
			requireRoom(t, file)
		}
	}
}

var (
	chartSize  = regexp.MustCompile(`<svg width="([\d.]+)pt" height="([\d.]+)pt"`)
	chartTexts = regexp.MustCompile(`(rotate\(90\)">\n)?<text x="([\d.]+)"[^>]*font-size:(\d+)px">([^<]+)</text>`)
)

// requireRoom fails when a text of a chart begins so late that it would be cut at the edge.
func requireRoom(t *testing.T, file string) {
	t.Helper()
	chart, err := os.ReadFile(file)
	require.NoError(t, err)
	edges := chartSize.FindSubmatch(chart)
	require.NotNil(t, edges, file)
	found := chartTexts.FindAllSubmatch(chart, -1)
	require.NotEmpty(t, found, file)
	number := func(digits []byte) float64 {
		n, err := strconv.ParseFloat(string(digits), 64)
		require.NoError(t, err)
		return n
	}
	for _, one := range found {
		width, height := number(edges[1]), number(edges[2])
		if len(one[1]) > 0 { // it runs along the height
			width = height
		}
		long, _, _ := plot.DefaultTextHandler.Box(string(one[4]), font.From(plot.DefaultFont, vg.Length(number(one[3]))))
		require.Less(t, number(one[2])+wider*long.Points(), width, "%s cuts %q", file, one[4])
	}
}

// README's chart says what the table says, in README's own words too.
func TestBarsAreTheTable(t *testing.T) {
	results, err := recorded("../docs/appendix/bench")
	require.NoError(t, err)
	drawn := t.TempDir()
	require.NoError(t, barsChart(results, drawn))
	chart, err := os.ReadFile(filepath.Join(drawn, "bars.svg"))
	require.NoError(t, err)
	committed, err := os.ReadFile("../docs/appendix/bench/bars.svg")
	require.NoError(t, err)
	require.Equal(t, string(committed), string(chart))
	var found []string
	for _, one := range regexp.MustCompile(`<text x="0" y="\d+">([^<]+)</text>\n<rect class="(\w+)" [^>]* width="([\d.]+)"[^>]*>\n<text [^>]*>([^<]+)</text>`).FindAllStringSubmatch(string(chart), -1) {
		found = append(found, one[1]+" "+one[4])
		require.Equal(t, one[1] == "rlock" || one[1] == "fairlock", one[2] == "ours", one[1])
	}
	require.Len(t, found, len(results.rows("fleet")))
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "no work inside: "+strings.Join(found, ", ")+"](docs/appendix/bench/bars.svg)")
	require.NoError(t, barsChart(&Results{}, drawn), "there is nothing to draw")
	require.Equal(t, []string{"0 ms", "99 ms", "0.1 s", "12.0 s"}, []string{spoken(0), spoken(99_000), spoken(100_000), spoken(12e6)})
}
