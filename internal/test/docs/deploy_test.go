package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/rueidisclient"
)

// docs/deploy.md has every line that the library logs, and docs/emergencies.md none that it does not log.
// docs/deploy.md says what each parameter of a URL means.
func TestDeployHasAll(t *testing.T) {
	text, err := os.ReadFile("docs/deploy.md")
	require.NoError(t, err)
	_, listed, found := strings.Cut(string(text), "\n## What is logged\n")
	require.True(t, found)
	listed, parameters, found := strings.Cut(listed, "\n## URLs\n")
	require.True(t, found)
	lines := logged(t)
	for line, path := range lines {
		has := strings.Contains(listed, "`"+line+"`")
		require.True(t, has, "docs/deploy.md lacks the line %q of %s", line, path)
	}
	require.Len(t, lines, strings.Count(listed, "\n| `")+1, "rows; one of them has two lines")

	symptoms, err := os.ReadFile("docs/emergencies.md")
	require.NoError(t, err)
	quoted := regexp.MustCompile("`latchkey: ([^`]+)`").FindAllStringSubmatch(string(symptoms), -1)
	require.NotEmpty(t, quoted)
	for _, line := range quoted {
		require.Contains(t, lines, line[1], "docs/emergencies.md quotes a line that is not logged")
	}

	rueidis, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/redis/rueidis").Output()
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(rueidis)), "url.go"))
	require.NoError(t, err)
	known := regexp.MustCompile(`q(?:\.Has\(|\.Get\(|\[)"(\w+)"`).FindAllSubmatch(source, -1)
	require.NotEmpty(t, known)
	for _, parameter := range known {
		require.Regexp(t, "(?m)^\\| .*`"+string(parameter[1])+"[=`]", parameters, "docs/deploy.md lacks a parameter")
		if _, err := rueidisclient.ParseURL("rediss://host?" + string(parameter[1]) + "=1s"); err != nil {
			require.NotContains(t, err.Error(), "there is no parameter")
		}
	}
}

// logged are the lines that the library logs, without what they begin with, and the file of each.
func logged(t *testing.T) map[string]string {
	t.Helper()
	line, all := regexp.MustCompile(`\.(?:Warn|Error|Info)\(\s*"latchkey: ([^"]+)"`), map[string]string{}
	for _, folder := range []string{"internal", "once", "leader", "fence", "redlock", "multilock", "barrier", "countdown", "semaphore"} {
		for _, file := range sources(t, folder, ".go") {
			for _, found := range line.FindAllStringSubmatch(strings.Join(file.lines, "\n"), -1) {
				all[found[1]] = file.path
			}
		}
	}
	return all
}
