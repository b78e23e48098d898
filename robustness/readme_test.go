package robustness

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	for _, f := range faults {
		wanted = append(wanted, f.Name)
	}
	require.Equal(t, wanted, names("What fails, and what that excuses"))
	wanted = nil
	for _, m := range Mutations {
		wanted = append(wanted, m.Name)
	}
	require.Equal(t, wanted, names("Mutations"))
}
