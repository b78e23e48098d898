package latchkeyweb_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The code of docs/web.md is in the Examples, which are compiled.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/web.md")
	require.NoError(t, err)
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	snippets := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(text, -1)
	require.Len(t, snippets, 2)
	lines := regexp.MustCompile(`(?m)^\s+`)
	for _, snippet := range snippets {
		require.Contains(t, lines.ReplaceAllString(string(examples), ""), strings.TrimSpace(lines.ReplaceAllString(string(snippet[1]), "")))
	}
	for _, page := range []string{"Now", "a name", "Jobs and leaders", "Deadlocks", "Clients", "Doctor"} {
		require.Contains(t, string(text), "\n| "+page+" |")
	}
}
