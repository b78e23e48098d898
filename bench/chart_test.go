package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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
		files, err := filepath.Glob(filepath.Join(folder, "*.svg"))
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
