package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// users of the small repository.
var users = []user{
	{"they find one another", resolve},
	{"the command", func(ctx context.Context, e *elsewhere) error {
		command, err := e.install(ctx, "cmd/mini")
		if err != nil {
			return err
		}
		out, err := e.run(ctx, "", command)
		if err == nil && out != "42 84\n" {
			err = fmt.Errorf("it says %q", out)
		}
		return err
	}},
}

func visitMiniature(t *testing.T, files tree) (string, error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	err := visit(t.Context(), options{version: version, date: today, out: &out}, files, users)
	left, globErr := filepath.Glob(filepath.Join(os.TempDir(), "latchkey-*"))
	require.NoError(t, globErr)
	require.Empty(t, left)
	return out.String(), err
}

// A release comes to its users, and nothing of that stays.
func TestVisit(t *testing.T) {
	out, err := visitMiniature(t, release(t, miniature()))
	require.NoError(t, err)
	require.Contains(t, out, "3 modules are published as v0.1.0")
	require.Contains(t, out, "the command")
}

// What verify would have refused does not come to users: the go command says so, or what it lists.
func TestVisitOfWhatIsWrong(t *testing.T) {
	good := release(t, miniature())
	for says, wrong := range map[string]tree{
		"It must not contain directives":          good.with(t, "cmd/mini/go.mod", "go 1.26.0\n", "go 1.26.0\n\nreplace example.com/other => ../..\n"),
		mini + "/kit gets ../ in place of":        good.with(t, "kit/go.mod", "go 1.26.0\n", "go 1.26.0\n\nreplace "+mini+" => ../\n"),
		"v0.0.9":                                  good.with(t, "kit/go.mod", "v0.1.0", "v0.0.9"),
		"missing go.sum entry":                    good.with(t, "bench/go.sum", "v0.1.0/go.mod", "v0.0.9/go.mod"),
		"missing go.sum entry needed to verify":   good.with(t, "kit/go.sum", "v0.1.0 h1:", "v0.0.9 h1:"),
		"verifying " + mini + "@v0.1.0: checksum": good.with(t, "kit/go.sum", "v0.1.0 h1:", "v0.1.0 h1:A"),
		"@v0.1.0/go.mod: checksum":                good.with(t, "kit/go.sum", "v0.1.0/go.mod h1:", "v0.1.0/go.mod h1:A"),
		"it says \"43 86\\n\"":                    release(t, miniature().with(t, "mini.go", "42", "43")),
		"updates to go.mod needed":                good.with(t, "cmd/mini/go.mod", "\t"+mini+" v0.1.0\n", ""),
	} {
		t.Run(says, func(t *testing.T) {
			_, err := visitMiniature(t, wrong)
			require.ErrorContains(t, err, says)
		})
	}
}

// The modules of the machine are nobody's to clean.
func TestRemove(t *testing.T) {
	t.Setenv("GOMODCACHE", t.TempDir())
	marker := filepath.Join(os.Getenv("GOMODCACHE"), "marker")
	require.NoError(t, os.WriteFile(marker, nil, 0o600))
	e := &elsewhere{folder: t.TempDir()} // without the environment that could not be had
	require.NoError(t, os.WriteFile(e.at("file"), nil, 0o600))
	require.NoError(t, e.remove())
	require.FileExists(t, marker)
	require.NoDirExists(t, e.folder)
}
