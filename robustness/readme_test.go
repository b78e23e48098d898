package robustness

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/robustness/faults"
)

// README.md has a row of each fault and of each mutation, and of no others.
func TestReadmeHasAll(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	names := func(heading string) (found []string) {
		_, rest, ok := strings.Cut(string(text), "\n## "+heading+"\n")
		require.True(t, ok, heading)
		rest, _, _ = strings.Cut(rest, "\n## ")
		for line := range strings.Lines(rest) {
			if cells := strings.Split(line, "|"); len(cells) > 3 && !strings.HasPrefix(cells[1], "--") {
				found = append(found, strings.TrimSpace(cells[1]))
			}
		}
		require.NotEmpty(t, found)
		return found[1:] // after the head of the table
	}
	var wanted []string
	for _, f := range faults.Table {
		wanted = append(wanted, f.Name)
	}
	require.Equal(t, wanted, names("What fails, and what that excuses"))
	wanted = nil
	for _, m := range Mutations {
		wanted = append(wanted, m.Name)
	}
	require.Equal(t, wanted, names("Mutations"))
}

// Rooms import only what the table of README.md allows, which has each of them, below all that it may import.
func TestRooms(t *testing.T) {
	allowed := rooms(t)
	format := `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{range .TestImports}} {{.}}{{end}}`
	list, err := exec.CommandContext(t.Context(), "go", "list", "-f", format, "./...").Output()
	require.NoError(t, err)
	var found []string
	for line := range strings.Lines(string(list)) {
		packages := strings.Fields(line)
		from := strings.TrimPrefix(packages[0], module+"/robustness/")
		if packages[0] == module+"/robustness" {
			from = "robustness"
		}
		found = append(found, from)
		for _, imported := range packages[1:] {
			if to, ours := strings.CutPrefix(imported, module+"/robustness/"); ours {
				require.True(t, allowed[from][to], "%s must not import %s", from, to)
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(allowed)), found)
}

// rooms returns the rooms of the table, each with what it may import.
func rooms(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| room | has | may import |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	names, all := regexp.MustCompile("`([a-z]+)`"), map[string]map[string]bool{}
	for row := range strings.Lines(table) {
		columns := strings.Split(row, "|")
		allowed := map[string]bool{}
		for _, to := range names.FindAllStringSubmatch(columns[3], -1) {
			require.Contains(t, all, to[1], "it is not above %s", columns[1])
			allowed[to[1]] = true
		}
		all[strings.Trim(columns[1], " `")] = allowed
	}
	return all
}
