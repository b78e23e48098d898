package docs_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// engines serve every primitive and know none, not even by way of another package: a new primitive changes
// none. So this list is not read from docs/architecture.md, as what TestArchitectureImports compares is.
var (
	engines = []string{
		"internal/session", "internal/terms", "internal/grant", "internal/wait", "internal/broadcast", "internal/hub", "internal/lease", "internal/due",
		"internal/retry", "internal/clock", "internal/fail", "internal/lua",
	}
	primitives = []string{
		"latchkey", "rlock", "fairlock", "spinlock", "rwlock", "multilock", "redlock", "semaphore", "countdown", "barrier",
		"once", "leader", "fence", "internal/lock",
	}
)

func TestEnginesKnowNoPrimitive(t *testing.T) {
	args := []string{"list", "-f", `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`}
	for _, engine := range engines {
		args = append(args, "./"+engine)
	}
	list, err := exec.CommandContext(t.Context(), "go", args...).Output()
	require.NoError(t, err)
	require.Equal(t, len(engines), strings.Count(string(list), "\n"))
	for line := range strings.Lines(string(list)) {
		packages := strings.Fields(line)
		for _, imported := range packages[1:] {
			require.NotContains(t, primitives, ours(imported), "%s imports it, perhaps by way of others", packages[0])
		}
	}
}

// source is a file that is no data of a test.
type source struct {
	path  string
	lines []string
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// sources are those of all modules below a folder.
func sources(t *testing.T, folder string, endings ...string) (all []source) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || path != "." && strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case !slices.Contains(endings, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		all = append(all, source{filepath.ToSlash(path), strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")})
		return err
	}))
	require.NotEmpty(t, all)
	return all
}

// Each file has one idea, and the package that puts the client together has no room for more.
func TestFilesAreShort(t *testing.T) {
	for _, file := range sources(t, ".", ".go", ".lua") {
		if !file.isTest() {
			require.LessOrEqual(t, len(file.lines), 350, file.path)
		}
	}
	sum := 0
	for _, file := range sources(t, "internal/core", ".go") {
		if !file.isTest() {
			sum += len(file.lines)
		}
	}
	require.Less(t, sum, 500, "internal/core")
}
