package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testdata/guarantees.tsv has the sentences of docs/guarantees.md, and the tests that fail when one is broken. A sentence
// is shown, or partly, or by no test. Each paragraph of the page that promises something has a line there, and each cell
// of its table.
func TestGuaranteesNameTheirTests(t *testing.T) {
	const document, lines = "docs/guarantees.md", "internal/test/docs/testdata/guarantees.tsv"
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	table, err := os.ReadFile(lines)
	require.NoError(t, err)
	page := collapsed(string(content))
	known, quotes, cells := testsOfTheRepository(t), []string{}, map[string]bool{}
	for line := range strings.Lines(string(table)) {
		quote, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		verdict, tests, _ := strings.Cut(rest, "\t")
		require.Contains(t, []string{"shown", "partly", "none"}, verdict, quote)
		require.Equal(t, verdict == "none", tests == "", "%s: what is shown has tests, and nothing else has", quote)
		for test := range strings.FieldsFuncSeq(tests, func(r rune) bool { return r == ',' }) {
			require.True(t, known[test], "%s names %s, which does not exist", lines, test)
		}
		if strings.Count(page, quote) == 1 {
			quotes = append(quotes, quote)
		} else {
			cells[strings.ReplaceAll(quote, "`", "")] = false // a row of the table and a cell, which is not found yet
		}
	}
	for line := range strings.Lines(string(content)) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		name, _, _ := strings.Cut(row[0], ",") // of several, the first one
		for _, cell := range row[1:] {
			said := strings.ReplaceAll(name+": "+cell, "`", "")
			advice := cell == "use servers without replicas"
			_, has := cells[said]
			require.NotEqual(t, advice, has, "%s has no line of %q", lines, said)
			cells[said] = true
		}
	}
	for cell, found := range cells {
		require.True(t, found, "%s: %q is not in %s, or more than once", lines, cell, document)
	}
	for paragraph := range strings.SplitSeq(string(content), "\n\n") {
		if !strings.HasPrefix(paragraph, "**") && !strings.HasPrefix(paragraph, "- **") {
			continue
		}
		for _, promise := range strings.Split(paragraph, "\n- ") {
			has := false
			for _, quote := range quotes {
				has = has || strings.Contains(collapsed(promise), quote)
			}
			require.True(t, has, "%s has no line of %q", lines, promise)
		}
	}
}

func collapsed(text string) string { return strings.Join(strings.Fields(text), " ") }
