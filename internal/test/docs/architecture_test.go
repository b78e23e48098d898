package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files that docs/architecture.md names exist.
func TestArchitectureNamesFiles(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`([a-z/]+\\.go)`").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, named)
	for _, file := range named {
		require.FileExists(t, filepath.FromSlash(file[1]))
	}
}

// Each way in docs/architecture.md says how many files it names, and how many lines they have, to the
// hundred. Nobody has to read more than that to follow it, and no file is entered more than twice.
func TestWaysAreShort(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	_, ways, found := strings.Cut(string(text), "\n## The way of a call\n")
	require.True(t, found)
	ways, _, _ = strings.Cut(ways, "\n## ")
	for _, way := range strings.Split(ways, "\n### ")[1:] {
		heading, _, _ := strings.Cut(way, "\n")
		times, lines := map[string]int{}, 0
		for _, file := range regexp.MustCompile("`([a-z/]+\\.go)`").FindAllStringSubmatch(way, -1) {
			if times[file[1]]++; times[file[1]] == 1 {
				source, err := os.ReadFile(filepath.FromSlash(file[1]))
				require.NoError(t, err)
				lines += strings.Count(string(source), "\n")
			}
			require.LessOrEqual(t, times[file[1]], 2, "%s: %s", heading, file[1])
		}
		said := fmt.Sprintf("%d files, %d lines", len(times), (lines+50)/100*100)
		require.Contains(t, way, said, heading)
		require.LessOrEqual(t, len(times), 30, heading)
		require.LessOrEqual(t, lines, 3700, heading)
	}
}

// Packages import only what the table of docs/architecture.md allows, which has no circle and no arrow from
// an engine to a primitive.
func TestArchitectureImports(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| package | may import |\n|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	names, allowed := regexp.MustCompile("`([a-z/]+)`"), map[string]map[string]bool{}
	for row := range strings.Lines(table) {
		columns := strings.Split(row, "|")
		for _, from := range names.FindAllStringSubmatch(columns[1], -1) {
			allowed[from[1]] = map[string]bool{}
			for _, to := range names.FindAllStringSubmatch(columns[2], -1) {
				allowed[from[1]][to[1]] = true
			}
		}
	}
	format := `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`
	list, err := exec.CommandContext(t.Context(), "go", "list", "-f", format, "./...").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(list)) {
		packages := strings.Fields(line)
		from := ours(packages[0])
		if from == "spec" || strings.HasPrefix(from, "internal/test/") {
			continue
		}
		if strings.HasPrefix(from, "examples/") { // programs: they import what users can
			for _, imported := range packages[1:] {
				require.NotContains(t, imported, "/internal/", from)
			}
			continue
		}
		require.Contains(t, allowed, from, "docs/architecture.md has no row for a package")
		for _, imported := range packages[1:] {
			if to := ours(imported); to != "" {
				require.True(t, allowed[from][to], "%s must not import %s", from, to)
			}
		}
	}
	requireNoCircle(t, allowed)
}

// ours is the name of one of our packages as the documents write it; empty for all others.
func ours(path string) string {
	const module = "github.com/latchkey-go/latchkey"
	if path == module {
		return "latchkey"
	}
	inside, _ := strings.CutPrefix(path, module+"/")
	if inside == path {
		return ""
	}
	return inside
}

// requireNoCircle takes away packages that may import none of the rest until nothing is left.
func requireNoCircle(t *testing.T, allowed map[string]map[string]bool) {
	t.Helper()
	for len(allowed) > 0 {
		before := len(allowed)
		for from, all := range allowed {
			free := true
			for to := range all {
				_, left := allowed[to]
				free = free && !left
			}
			if free {
				delete(allowed, from)
			}
		}
		require.Less(t, len(allowed), before, "a circle in docs/architecture.md: %v", allowed)
	}
}
