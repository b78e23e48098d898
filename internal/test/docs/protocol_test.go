package docs_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every rule of docs/protocol.md has tests, and the table at its end has them. It is made of the comments of
// the tests: one that fails when a rule is broken says so in its last line, as "Rule 24." or "Rules 3, 24."
// With LATCHKEY_UPDATE=1 the table is written.
func TestProtocolNamesItsTests(t *testing.T) {
	const document, above = "docs/protocol.md", "\n| rule | tests |\n|---|---|\n"
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	text, table, found := strings.Cut(string(content), above)
	require.True(t, found, "%s has no table of tests", document)
	_, rules, found := strings.Cut(text, "\n## The rules\n")
	require.True(t, found)
	headings, kept, made := map[int]string{}, testsOfRules(t), ""
	for _, heading := range regexp.MustCompile(`(?m)^#### ((\d+)\. .*)$`).FindAllStringSubmatch(rules, -1) {
		number, err := strconv.Atoi(heading[2])
		require.NoError(t, err)
		require.Empty(t, headings[number], "%s has two rules of this number", document)
		headings[number] = heading[1]
	}
	require.NotEmpty(t, headings)
	for number := range kept {
		require.NotEmpty(t, headings[number], "%v say that they keep rule %d, which does not exist", kept[number], number)
	}
	for number := 1; number <= len(headings); number++ {
		require.NotEmpty(t, headings[number], "%s has no rule %d, and a later one", document, number)
		require.NotEmpty(t, kept[number], "no test keeps rule %d: let the last line of its comment be \"Rule %d.\"", number, number)
		made += fmt.Sprintf("| [%d](#%s) | `%s` |\n", number, anchor(headings[number]), strings.Join(kept[number], "`, `"))
	}
	if os.Getenv("LATCHKEY_UPDATE") != "" {
		require.NoError(t, os.WriteFile(document, []byte(text+above+made), 0o644)) //nolint:gosec // to be read by all
		table = made
	}
	if made != table { // both are long
		require.FailNow(t, document, "LATCHKEY_UPDATE=1 go test . -run %s writes its table", t.Name())
	}

	tests := testsOfTheRepository(t)
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w*`).FindAllString(text, -1) {
		require.True(t, tests[name], "%s names %s, which does not exist", document, name)
	}
}

// testsOfRules are the tests that say which rules they keep, by rule, each with its folder before it.
func testsOfRules(t *testing.T) map[int][]string {
	t.Helper()
	said := regexp.MustCompile(`(?m)^// Rules? ([\d, ]+)\.\n(.*)$`)
	declared, kept := regexp.MustCompile(`^func (Test\w+)\(\w+ \*testing\.T\)`), map[int][]string{}
	for _, file := range sources(t, ".", ".go") {
		if !file.isTest() {
			continue
		}
		for _, found := range said.FindAllStringSubmatch(strings.Join(file.lines, "\n"), -1) {
			test := declared.FindStringSubmatch(found[2])
			require.NotNil(t, test, "%s: rules %s are kept by what is no test: %s", file.path, found[1], found[2])
			for rule := range strings.SplitSeq(found[1], ", ") {
				number, err := strconv.Atoi(rule)
				require.NoError(t, err, "%s: %s", file.path, found[0])
				kept[number] = append(kept[number], strings.TrimPrefix(path.Dir(file.path), ".")+"."+test[1])
			}
		}
	}
	for number := range kept {
		slices.Sort(kept[number])
	}
	return kept
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

// docs/appendix/redisson-tests.md says of each of Redisson's tests which one here shows the same, or why none does.
func TestRedissonNamesItsTests(t *testing.T) {
	text, err := os.ReadFile("docs/appendix/redisson-tests.md")
	require.NoError(t, err)
	tests, rows := testsOfTheRepository(t), 0
	name := regexp.MustCompile("`([a-z/]*\\.Test\\w+)`")
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `test") {
			continue
		}
		rows++
		names := name.FindAllStringSubmatch(line, -1)
		explained := regexp.MustCompile(`does not apply|other here|[Ss]ee above|as of `).MatchString(line)
		require.True(t, len(names) > 0 || explained, line)
		for _, n := range names {
			require.True(t, tests[n[1]], "docs/appendix/redisson-tests.md names %s, which does not exist", n[1])
		}
	}
	require.Greater(t, rows, 150)
}

// robustness/README.md says which test shows each bug that there was, and which of these tests the gate leaves to the
// night: what measures, and the searches of the models.
func TestBugsNameTheirTests(t *testing.T) {
	text, err := os.ReadFile("robustness/README.md")
	require.NoError(t, err)
	_, bugs, found := strings.Cut(string(text), "\n## Bugs that were found in this project\n")
	require.True(t, found)
	tests, night := testsOfTheRepository(t), map[string]bool{}
	for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(bugs, -1) {
		require.True(t, tests[name[1]], "robustness/README.md names %s, which does not exist", name[1])
		late := strings.HasPrefix(name[1], "TestMeasured")
		for _, folder := range []string{"internal/test/model", "internal/test/explore", "integration"} {
			late = late || tests[folder+"."+name[1]]
		}
		if late {
			night[name[1]] = true
		}
	}
	delete(night, "TestTheCallerMayStopListening") // of a trace, as the gate has them
	said := "The gate runs all these tests, but for `" + strings.Join(slices.Sorted(maps.Keys(night)), "`, `") + "`. The night has these."
	require.Contains(t, bugs, said)
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
