package latchkeyvet_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/latchkey-go/latchkey/latchkeyvet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// together is all analyzers as one: so the packages are loaded once, and what one of them says of the
// snippets of another one is compared as well.
func together() *analysis.Analyzer {
	all := &analysis.Analyzer{Name: "together", Doc: "run all"}
	for _, a := range latchkeyvet.Analyzers() {
		for _, required := range a.Requires {
			if !slices.Contains(all.Requires, required) {
				all.Requires = append(all.Requires, required)
			}
		}
	}
	all.Run = func(pass *analysis.Pass) (any, error) {
		for _, a := range latchkeyvet.Analyzers() {
			if _, err := a.Run(pass); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	return all
}

// The analyzers report what the comments of the snippets want, and nothing else. Their fixes make of wrong.go
// what is in wrong.go.golden. The snippets are a module that has the real packages: one that does not fit
// the API any more does not compile, which fails the test.
func TestAnalyzers(t *testing.T) {
	require.NoError(t, analysis.Validate(latchkeyvet.Analyzers()))
	results := analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), together(), "./...")
	require.Greater(t, len(results), len(latchkeyvet.Analyzers()))
	for _, result := range results {
		require.NoError(t, result.Err)
		require.Empty(t, result.Pass.TypeErrors)
	}
}

// There are enough snippets of both kinds, and each wrong one has a finding: what it is and what to do.
func TestSnippets(t *testing.T) {
	count := map[string]int{}
	for _, a := range latchkeyvet.Analyzers() {
		for _, kind := range []string{"wrong", "right"} {
			snippets := functions(t, a.Name, kind)
			require.NotEmpty(t, snippets, "%s/%s.go", a.Name, kind)
			count[kind] += len(snippets)
			for _, f := range snippets {
				require.Equal(t, kind == "wrong", strings.Contains(f, "// want `"), "%s: %s", a.Name, f)
			}
		}
	}
	require.GreaterOrEqual(t, count["wrong"], 20)
	require.GreaterOrEqual(t, count["right"], 20)
}

// functions returns the functions of a file of snippets that are about a client, a context, an error or a request.
func functions(t *testing.T, analyzer, kind string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", analyzer, kind+".go"))
	require.NoError(t, err)
	return regexp.MustCompile(`(?ms)^func [^\n]*(?:ctx(?:, program)? context|c \*latchkey|\(err error|http\.)[^\n]*\{(?:\n.*?^| [^\n]* )\}$`).
		FindAllString(string(text), -1)
}

// README.md has, for each analyzer, code that is wrong and code that is right, which are among the snippets.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	wants := regexp.MustCompile(" // want [^\n]*")
	for _, a := range latchkeyvet.Analyzers() {
		_, section, found := strings.Cut(string(text), "\n## "+a.Name+"\n")
		require.True(t, found, a.Name)
		section, _, _ = strings.Cut(section, "\n## ")
		blocks := regexp.MustCompile("(?ms)^```go\n(.*?)\n```$").FindAllStringSubmatch(section, -1)
		require.Len(t, blocks, 2, a.Name)
		for i, kind := range []string{"wrong", "right"} {
			bare := wants.ReplaceAllString(strings.Join(functions(t, a.Name, kind), "\n"), "")
			require.Contains(t, bare, blocks[i][1], "%s/%s.go", a.Name, kind)
		}
	}
}

// go install takes no module that replaces another one.
func TestInstalls(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	require.NotContains(t, string(text), "replace")
	require.NotContains(t, string(text), "latchkey v", "it is not released together with the root")
}
