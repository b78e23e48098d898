package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var today = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// mini is the module path of a small repository. It ends as git's do, so that the go command asks nobody
// where the repository is.
const mini = "example.invalid/mini.git"

// miniature is a repository with modules that need one another: a root, a kit, a command, and one that nobody
// gets by a version.
func miniature() tree {
	mod := func(folder string, lines ...string) file {
		return file{data: []byte(strings.Join(append([]string{"module " + mini + folder, "", "go 1.26.0", ""}, lines...), "\n"))}
	}
	text := func(s string) file { return file{data: []byte(s)} }
	needsRoot := "require " + mini + " v0.0.0\n"
	return tree{
		"go.mod":           mod(""),
		"go.work":          text("go 1.26.0\n\nuse (\n\t.\n\t./bench\n\t./cmd/mini\n\t./kit\n)\n"),
		"LICENSE":          text("Do what you like.\n"),
		"CHANGELOG.md":     text("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Everything.\n"),
		"mini.go":          text("// Package mini answers.\npackage mini\n\n// Answer returns it.\nfunc Answer() int { return 42 }\n"),
		"internal/in/i.go": text("package in\n\n// Secret is nobody's.\nconst Secret = 1\n"),
		"kit/go.mod":       mod("/kit", needsRoot, "replace "+mini+" => ../\n"),
		"kit/kit.go":       text("// Package kit has a kit.\npackage kit\n\nimport \"" + mini + "\"\n\n// Twice is the answer, twice.\nfunc Twice() int { return 2 * mini.Answer() }\n"),
		"cmd/mini/go.mod": mod("/cmd/mini", "require (\n\t"+mini+" v0.0.0\n\t"+mini+"/kit v0.0.0\n)\n",
			"replace (\n\t"+mini+" => ../..\n\t"+mini+"/kit => ../../kit\n)\n"),
		"cmd/mini/main.go": text("// Command mini prints it.\npackage main\n\nimport (\n\t\"fmt\"\n\n\t\"" + mini + "\"\n\t\"" + mini +
			"/kit\"\n)\n\nfunc main() { fmt.Println(mini.Answer(), kit.Twice()) }\n"),
		"bench/go.mod":           mod("/bench", needsRoot, "replace "+mini+" => ../\n"),
		"bench/main.go":          text("package main\n\nimport \"" + mini + "\"\n\nfunc main() { println(mini.Answer()) }\n"),
		"kit/testdata/go.mod":    text("module snippets\n"),
		"kit/testdata/broken.go": text("package"),
	}
}

// with is a tree in which a text of one file is another one. It must be there.
func (t tree) with(tb testing.TB, name, from, to string) tree {
	tb.Helper()
	require.Contains(tb, string(t[name].data), from, name)
	changed := maps.Clone(t)
	changed[name] = file{data: []byte(strings.ReplaceAll(string(t[name].data), from, to))}
	return changed
}

// repository puts a tree under git, in a folder of the test's own, with one commit.
func repository(t *testing.T, files tree) string {
	t.Helper()
	root := t.TempDir()
	for name, value := range map[string]string{
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.invalid", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.invalid",
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
	} {
		t.Setenv(name, value)
	}
	must(t, root, "git", "init", "-q", "-b", "main")
	commitFiles(t, root, files)
	return root
}

// commitFiles commits these files, and changes no other.
func commitFiles(t *testing.T, root string, files tree) {
	t.Helper()
	require.NoError(t, files.write(root))
	must(t, root, "git", "add", "-A")
	must(t, root, "git", "commit", "-q", "-m", "files")
}

// must runs a command, which has to succeed, and returns what it says.
func must(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = folder
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

// command runs one of the program, and returns what it says.
func runTool(t *testing.T, root string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append(args, "-C", root), &out)
	return out.String(), err
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{
		nil, {"nonsense"}, {"check", "v0.1.0"}, {"commit"}, {"commit", "-version", "0.1.0"}, {"commit", "-version", "v0.1"},
		{"commit", "-version", "v1.0.0+build"}, {"check", "-version", "v0.0.0-20261123000000-0123456789ab"},
	} {
		require.Error(t, run(t.Context(), args, &bytes.Buffer{}), args)
	}
}
