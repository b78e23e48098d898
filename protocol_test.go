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

// testsOfTheRepository are the names of all tests, in any package of any of its modules.
func testsOfTheRepository(t *testing.T) map[string]bool {
	t.Helper()
	declared, tests := regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`), map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(source, -1) {
			tests[string(found[1])] = true
		}
		return err
	}))
	return tests
}
