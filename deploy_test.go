package latchkey_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/deploy.md has every line that the library logs, and says what each parameter of a URL means.
func TestDeployHasAll(t *testing.T) {
	text, err := os.ReadFile("docs/deploy.md")
	require.NoError(t, err)
	_, logged, found := strings.Cut(string(text), "\n## What is logged\n")
	require.True(t, found)
	logged, parameters, found := strings.Cut(logged, "\n## URLs\n")
	require.True(t, found)

	lines, called := regexp.MustCompile(`\.(?:Warn|Error|Info)\(\s*"latchkey: ([^"]+)"`), map[string]bool{}
	for _, folder := range []string{"internal", "once", "leader", "fence", "redlock", "multilock", "barrier", "countdown", "semaphore"} {
		for _, file := range sources(t, folder, ".go") {
			for _, line := range lines.FindAllStringSubmatch(strings.Join(file.lines, "\n"), -1) {
				called[line[1]] = true
				listed := strings.Contains(logged, "`"+line[1]+"`")
				require.True(t, listed, "docs/deploy.md lacks the line %q of %s", line[1], file.path)
			}
		}
	}
	require.Len(t, called, strings.Count(logged, "\n| `")+2, "rows; two of them have two lines")

	rueidis, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/redis/rueidis").Output()
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(rueidis)), "url.go"))
	require.NoError(t, err)
	known := regexp.MustCompile(`q(?:\.Has\(|\.Get\(|\[)"(\w+)"`).FindAllSubmatch(source, -1)
	require.NotEmpty(t, known)
	for _, parameter := range known {
		require.Regexp(t, "(?m)^\\| .*`"+string(parameter[1])+"[=`]", parameters, "docs/deploy.md lacks a parameter")
	}
}
