package robustness

import (
	"cmp"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each mutation can be applied: its old texts are in the files, once.
func TestMutationsApply(t *testing.T) {
	names := map[string]bool{}
	for _, m := range Mutations {
		require.False(t, names[m.Name], m.Name)
		names[m.Name] = true
		for _, e := range m.Edits {
			text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(e.File)))
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(text), e.Old), "%s: %q in %s", m.Name, e.Old, e.File)
		}
	}
}

// The mutations that ROBUSTNESS_MUTATIONS names are found: all, so many at random, or one by its name.
func TestMutations(t *testing.T) {
	wanted := os.Getenv("ROBUSTNESS_MUTATIONS")
	if wanted == "" {
		wanted = "0" // they take minutes: make robustness-mutations
	}
	some := Mutations
	if n, err := strconv.Atoi(wanted); err == nil {
		some = nil
		for _, i := range rand.Perm(len(Mutations))[:min(n, len(Mutations))] {
			some = append(some, Mutations[i])
		}
	} else if wanted != "all" {
		some = nil
		for _, m := range Mutations {
			if strings.Contains(m.Name, wanted) {
				some = append(some, m)
			}
		}
		require.NotEmpty(t, some, wanted)
	}
	if len(some) == 0 {
		return
	}
	tree, find := copyTree(t), Mutation.find
	if os.Getenv("ROBUSTNESS_JUDGE") == "gate" {
		find = Mutation.findByTests
	}
	var table strings.Builder
	for _, m := range some {
		t.Run(m.Name, func(t *testing.T) { fmt.Fprintf(&table, "| %s | %s |\n", m.Name, find(m, t, tree)) })
	}
	fmt.Printf("| mutation | found after |\n|---|---|\n%s", table.String())
}

// copyTree copies the repository, so that it can be changed.
func copyTree(t *testing.T) string {
	t.Helper()
	from, to := os.DirFS(".."), t.TempDir()
	require.NoError(t, fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return fs.SkipDir
			}
			return err
		}
		text, err := fs.ReadFile(from, path)
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		target := filepath.Join(to, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	}))
	return to
}

var seen = regexp.MustCompile(`VIOLATION ([a-z -]+): (.*)[\s\S]*seen after ([0-9.]+) s`)

// put puts the mutation into the tree, until the test ends.
func (m Mutation) put(t *testing.T, tree string) {
	t.Helper()
	for _, e := range m.Edits {
		path := filepath.Join(tree, filepath.FromSlash(e.File))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), e.Old)
		changed := strings.Replace(string(text), e.Old, e.New, 1)
		require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
		original, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(e.File)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.WriteFile(path, original, 0o600)) })
	}
}

// judges are parts of the gate, the quickest first.
var judges = []struct {
	Name string
	Args []string
}{
	{"contract", []string{"./internal/test/contract", "-parallel", "16", "-run", "^TestStandalone$"}},
	{"scripts", []string{"./internal/lua", "-skip", "^TestComposedScriptsAreAsReviewed$|/^embedded$"}}, // which finds each change of a script
	{"packages", []string{
		"-p", "2", "-parallel", "8", ".", "./internal/test/whole", "./rlock", "./fairlock", "./rwlock", "./multilock", "./redlock", "./spinlock", "./semaphore", "./countdown", "./barrier",
		"./leader", "./once", "./fence", "./internal/lock", "./internal/grant", "./internal/session", "./internal/lease", "./internal/wait", "-skip", "^TestMeasured",
	}},
	{"random operations", []string{"./internal/test/property"}},
}

// failed is how a test fails that ends, that does not, or whose failure comes after its end.
var failed = regexp.MustCompile(`--- FAIL: (\S+)|panic: (test timed out)|panic: Fail in goroutine after (\S+)`)

// findByTests puts the mutation into the tree, and has the parts of the gate judge it, one after the other. It returns
// which one finds it, after how many seconds, and the first test that fails.
func (m Mutation) findByTests(t *testing.T, tree string) string {
	t.Helper()
	m.put(t, tree)
	ofScripts := slices.ContainsFunc(m.Edits, func(e Edit) bool { return strings.HasSuffix(e.File, ".lua") })
	for _, judge := range judges {
		if judge.Name == "scripts" && !ofScripts {
			continue
		}
		began := time.Now()
		run := exec.CommandContext(t.Context(), "go", append([]string{"test", "-vet=off", "-failfast", "-timeout", "10m"}, judge.Args...)...)
		run.Dir = tree
		output, err := run.CombinedOutput()
		if err == nil {
			continue
		}
		test := failed.FindStringSubmatch(string(output))
		require.NotNil(t, test, "%s: %s", judge.Name, output)
		return fmt.Sprintf("%s, %.0f s: `%s`", judge.Name, time.Since(began).Seconds(), cmp.Or(test[1], test[2], test[3]))
	}
	require.Fail(t, "no part of the gate finds it")
	return ""
}

// find puts the mutation into the tree, builds the harness there, and runs it until it finds something. It
// returns after how many seconds, and what.
func (m Mutation) find(t *testing.T, tree string) string {
	t.Helper()
	m.put(t, tree)
	binary := filepath.Join(tree, "mutant.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, ".")
	build.Dir = filepath.Join(tree, "robustness")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	run := exec.CommandContext(t.Context(), binary, "-test.run", "^TestRobustness$")
	run.Dir = filepath.Join(tree, "robustness")
	run.Env = append(os.Environ(), "ROBUSTNESS_SECONDS=120", fmt.Sprintf("ROBUSTNESS_SEED=%d", rand.Uint64N(1_000_000)),
		"ROBUSTNESS_DIR="+t.TempDir(), "ROBUSTNESS_TOPOLOGY="+string(m.Focus.Topology), "ROBUSTNESS_FAULTS="+strings.Join(m.Focus.Faults, ","))
	began := time.Now()
	output, _ = run.CombinedOutput() // it fails when it finds something
	found := seen.FindStringSubmatch(string(output))
	require.NotNil(t, found, "it is not found in %v: %.5000s", time.Since(began), output)
	t.Logf("found after %s s: %s: %.300s", found[3], found[1], found[2])
	return fmt.Sprintf("%s s: %s", found[3], found[1])
}
