package latchkey_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every rule of docs/protocol.md names tests, in the order of its number, and every test that it names
// exists.
func TestProtocolNamesItsTests(t *testing.T) {
	text, err := os.ReadFile("docs/protocol.md")
	require.NoError(t, err)
	tests := testsOfTheRepository(t)
	_, rules, found := strings.Cut(string(text), "\n## The rules\n")
	require.True(t, found)
	for i, rule := range strings.Split(rules, "\n### ")[1:] {
		require.True(t, strings.HasPrefix(rule, fmt.Sprintf("%d. ", i+1)), "rule %d: %.40s", i+1, rule)
		_, named, found := strings.Cut(rule, "\nTests: ")
		require.True(t, found, "rule %d has no tests", i+1)
		require.Regexp(t, "^`Test", named)
	}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(string(text), -1) {
		require.True(t, tests[name], "docs/protocol.md names %s, which does not exist", name)
	}
}

// Each row of docs/compare.md ends with the tests that show what it says.
func TestCompareNamesItsTests(t *testing.T) {
	text, err := os.ReadFile("docs/compare.md")
	require.NoError(t, err)
	tests, rows := testsOfTheRepository(t), 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) < 2 || strings.HasPrefix(line, "| what went wrong") {
			continue
		}
		require.Len(t, cells, 4, line)
		rows++
		require.Regexp(t, "^`[a-z/]*.Test\\w+`(, `[a-z/]*.Test\\w+`)* \\|$", cells[3], line)
		for _, name := range regexp.MustCompile("`([a-z/]*\\.Test\\w+)`").FindAllStringSubmatch(cells[3], -1) {
			require.True(t, tests[name[1]], "docs/compare.md names %s, which does not exist", name[1])
		}
	}
	require.Greater(t, rows, 20)
}

// testsOfTheRepository are the names of all tests, in any package of any of its modules: each alone, and with
// its folder before it, as in rlock.TestLinger.
func testsOfTheRepository(t *testing.T) map[string]bool {
	t.Helper()
	declared, tests := regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`), map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(source, -1) {
			name := string(found[1])
			tests[name], tests[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path))+"."+name, ".")] = true, true
		}
		return err
	}))
	return tests
}
