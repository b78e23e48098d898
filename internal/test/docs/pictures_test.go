package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The pictures of the documents name scripts, keys and errors that exist, and each participant that they use.
func TestPicturesAreTrue(t *testing.T) {
	var code strings.Builder
	for _, file := range sources(t, ".", ".go", ".lua") {
		if !file.isTest() {
			code.WriteString(strings.Join(file.lines, "\n"))
		}
	}
	pictures := 0
	for _, document := range documents(t) {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```$").FindAllSubmatch(text, -1) {
			pictures++
			picture := string(found[1])
			if strings.HasPrefix(picture, "stateDiagram-v2\n") {
				statesAreTrue(t, picture)
				continue
			}
			if strings.HasPrefix(picture, "flowchart LR\n") {
				choicesAreTrue(t, document, picture)
				continue
			}
			require.True(t, strings.HasPrefix(picture, "sequenceDiagram\n"), "%s: another kind of picture needs another check", document)
			participants := map[string]bool{}
			for _, p := range regexp.MustCompile(`(?m)^    participant (\w+) as .+$`).FindAllStringSubmatch(picture, -1) {
				participants[p[1]] = true
			}
			arrows := regexp.MustCompile(`(?m)^ +(\w+)(?:->>|-->>|-x)(\w+): .+$`).FindAllStringSubmatch(picture, -1)
			require.NotEmpty(t, arrows)
			require.Equal(t, len(arrows), strings.Count(picture, "->>")+strings.Count(picture, "-x"), "an arrow is not understood:\n%s", picture)
			for _, arrow := range arrows {
				require.True(t, participants[arrow[1]] && participants[arrow[2]], "%s: who is that? %s", document, arrow[0])
			}
			for _, script := range regexp.MustCompile(`\b[a-z]+/[a-z]+\b`).FindAllString(picture, -1) {
				require.FileExists(t, filepath.Join("internal", "lua", filepath.FromSlash(script)+".lua"), "%s names a script", document)
			}
			for _, name := range regexp.MustCompile(`\b(?:latchkey_\w+|redisson_\w+|Err[A-Z]\w+)`).FindAllString(picture, -1) {
				exists := strings.Contains(code.String(), name)
				require.True(t, exists, "%s names %s, which does not exist", document, name)
			}
		}
	}
	require.GreaterOrEqual(t, pictures, 4)
}

// choicesAreTrue sees that a picture of which primitive to use leads to all of them, each with a page.
func choicesAreTrue(t *testing.T, document, picture string) {
	t.Helper()
	led := map[string]bool{}
	for _, arrow := range regexp.MustCompile(`(?m)^    \w+ -->\|[^|]+\| (\w+)\[(\w+)\]$`).FindAllStringSubmatch(picture, -1) {
		require.Equal(t, arrow[1], arrow[2], document)
		led[arrow[1]] = true
	}
	for _, room := range public() {
		if room != "latchkey" && room != "rueidisclient" {
			require.True(t, led[room], "%s: nothing leads to %s", document, room)
			require.FileExists(t, filepath.Join("docs", "primitives", room+".md"))
			delete(led, room)
		}
	}
	require.Empty(t, led, document)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), picture, "README.md shows the same")
}

// statesAreTrue compares a picture of the life of a tenure with the table of its states: each of them is in
// it, and each arrow is a transition that is legal.
func statesAreTrue(t *testing.T, picture string) {
	t.Helper()
	source, err := os.ReadFile("internal/wait/state.go")
	require.NoError(t, err)
	states, legal := map[string]bool{}, map[[2]string]bool{{"[*]", "idle"}: true, {"over", "[*]"}: true}
	for _, row := range regexp.MustCompile(`(?m)^//\t([a-z]+) +([a-z]+) +[^ ]`).FindAllSubmatch(source, -1) {
		if from, to := string(row[1]), string(row[2]); from != "from" {
			states[from], states[to], legal[[2]string{from, to}] = true, true, true
		}
	}
	require.Len(t, states, 12)
	seen := map[string]bool{}
	arrows := regexp.MustCompile(`(?m)^    (\S+) --> (\S+?)(?::.*)?$`).FindAllStringSubmatch(picture, -1)
	require.Len(t, arrows, strings.Count(picture, "-->"))
	for _, arrow := range arrows {
		require.True(t, legal[[2]string{arrow[1], arrow[2]}], "%s cannot become %s", arrow[1], arrow[2])
		seen[arrow[1]], seen[arrow[2]] = true, true
	}
	delete(seen, "[*]")
	require.Equal(t, states, seen)
}
