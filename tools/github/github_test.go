// Package github has tests of what GitHub reads in .github. Nobody else would find a mistake in it before it
// is on the branch: actionlint knows what a workflow may be, and not what ours have to be.
package github

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const folder = "../../.github"

// read decodes a file, in which nothing may be unknown if that is said.
func read(t *testing.T, name string, into any, known bool) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(known)
	require.NoError(t, decoder.Decode(into), name)
	return text
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, filepath.FromSlash(pattern)))
	require.NoError(t, err)
	require.NotEmpty(t, names, pattern)
	return names
}

// Workflows may read the repository and nothing else, but for a job that publishes. Their actions are named by a
// hash, which cannot be moved, and beside it by a version. Their jobs end, and what they have make do exists.
func TestWorkflows(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	for _, name := range files(t, "workflows/*.yaml") {
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Timeout     int `yaml:"timeout-minutes"`
				Permissions map[string]string
			}
		}
		text := read(t, name, &workflow, false)
		require.Equal(t, map[string]string{"contents": "read"}, workflow.Permissions, name)
		require.NotEmpty(t, workflow.Jobs, name)
		for job, j := range workflow.Jobs {
			require.Positive(t, j.Timeout, "%s: %s may never end", name, job)
			if job != "publish" {
				require.Empty(t, j.Permissions, "%s: %s", name, job)
			}
		}
		for _, action := range regexp.MustCompile(`uses: (.+)`).FindAllSubmatch(text, -1) {
			require.Regexp(t, `^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`, string(action[1]), name)
		}
		goals := regexp.MustCompile(`(?m)(?:\bmake |goal: |^          - )([a-z-]+)(?:$| [A-Z]|,)`).FindAllSubmatch(text, -1)
		require.NotEmpty(t, goals, name)
		for _, goal := range goals {
			exists := bytes.Contains(makefile, []byte("\n"+string(goal[1])+":"))
			require.True(t, exists, "%s has make do %s, which does not exist", name, goal[1])
		}
	}
}

// The night on GitHub has all parts of .ci/night.
func TestNight(t *testing.T) {
	var workflow struct {
		Jobs struct {
			Night struct {
				Strategy struct{ Matrix struct{ Part []string } }
			}
		}
	}
	read(t, filepath.Join(folder, "workflows/nightly.yaml"), &workflow, false)
	parts, err := exec.Command("../../.ci/night", "list").Output()
	require.NoError(t, err)
	require.Equal(t, strings.Fields(string(parts)), workflow.Jobs.Night.Strategy.Matrix.Part)
}

// form is one of an issue.
type form struct {
	Name, Description string
	Labels            []string
	Body              []struct {
		Type, ID   string
		Attributes struct {
			Label, Description, Placeholder, Render, Value string
			Options                                        []any
		}
		Validations struct{ Required bool }
	}
}

// The forms of issues are what GitHub takes, and that of a bug asks for what nobody can do without.
func TestIssueForms(t *testing.T) {
	required := map[string][]string{
		"bug.yml":     {"happened", "program", "version", "server", "topology", "often"},
		"feature.yml": {"problem"},
	}
	for name, want := range required {
		var f form
		read(t, filepath.Join(folder, "ISSUE_TEMPLATE", name), &f, true)
		require.NotEmpty(t, f.Name)
		require.NotEmpty(t, f.Description)
		var must, ids []string
		for _, field := range f.Body {
			switch field.Type {
			case "markdown":
				require.NotEmpty(t, field.Attributes.Value, name)
				continue
			case "dropdown", "checkboxes":
				require.Greater(t, len(field.Attributes.Options), 1, field.ID)
			case "input", "textarea":
				require.Empty(t, field.Attributes.Options, field.ID)
			default:
				require.Fail(t, "no such field", "%s: %s", name, field.Type)
			}
			require.NotEmpty(t, field.Attributes.Label, field.ID)
			require.Regexp(t, `^[a-z]+$`, field.ID)
			require.False(t, slices.Contains(ids, field.ID), "%s has two %s", name, field.ID)
			ids = append(ids, field.ID)
			if field.Validations.Required {
				must = append(must, field.ID)
			}
		}
		require.Equal(t, want, must, name)
		require.True(t, name != "bug.yml" || slices.Contains(ids, "logs"))
	}
	require.Len(t, files(t, "ISSUE_TEMPLATE/*.yml"), len(required)+1, "and config.yml")
}

// Dependabot looks at each module, at the actions, and at what builds the site.
func TestDependabot(t *testing.T) {
	var config struct {
		Version int
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
			Schedule    struct{ Interval string }
			Groups      map[string]struct{ Patterns []string }
		}
	}
	read(t, filepath.Join(folder, "dependabot.yml"), &config, true)
	var modules []string
	list, err := exec.Command("git", "-C", "../..", "ls-files", "go.mod", "**/go.mod").Output()
	require.NoError(t, err)
	for name := range strings.FieldsSeq(string(list)) {
		if !strings.Contains(name, "testdata") {
			modules = append(modules, strings.TrimSuffix("/"+strings.TrimSuffix(name, "go.mod"), "/"))
		}
	}
	modules[slices.Index(modules, "")] = "/"
	require.Len(t, config.Updates, 3)
	require.ElementsMatch(t, modules, config.Updates[0].Directories)
	require.Equal(t, "/tools/site", config.Updates[2].Directory)
	require.FileExists(t, "../site/requirements.txt")
}
