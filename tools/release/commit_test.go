package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tag makes the tags that the program has named.
func tag(t *testing.T, root, said string) (tags int) {
	t.Helper()
	for line := range strings.Lines(said) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "git tag "); ok {
			tags++
			must(t, root, "git", append([]string{"tag"}, strings.Fields(command)...)...)
		}
	}
	return tags
}

// What is committed and tagged is what the go command gets from git, with the checksums that the tree has.
// The branch, and what is checked out, stay as they are.
func TestCommit(t *testing.T) {
	root := repository(t, miniature())
	before := must(t, root, "git", "rev-parse", "main")
	said, err := runTool(t, root, "commit", "-version", version)
	require.NoError(t, err)
	require.Equal(t, before, must(t, root, "git", "rev-parse", "main"))
	require.Equal(t, before, must(t, root, "git", "rev-parse", "release/v0.1.0^"))
	require.Empty(t, must(t, root, "git", "status", "--porcelain"))
	require.Equal(t, 3, tag(t, root, said))
	require.Equal(t, 1, strings.Count(must(t, root, "git", "worktree", "list", "--porcelain"), "worktree "))

	// git takes the repository for the one at the address that the module path stands for.
	cache := t.TempDir()
	for name, value := range map[string]string{
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "url." + fileURL(root) + ".insteadOf", "GIT_CONFIG_VALUE_0": "https://" + strings.TrimSuffix(mini, ".git"),
		"GOPROXY": "direct", "GONOSUMDB": mini, "GOWORK": "off", "GOMODCACHE": cache, "GOBIN": t.TempDir(), "GOFLAGS": "-modcacherw",
	} {
		t.Setenv(name, value)
	}
	elsewhere := t.TempDir()
	must(t, elsewhere, "go", "install", mini+"/cmd/mini@"+version)
	require.Equal(t, "42 84\n", must(t, elsewhere, filepath.Join(os.Getenv("GOBIN"), "mini")))
	must(t, elsewhere, "git", "clone", "-q", "--branch", version, root, ".")
	tagged, err := folderTree(t.Context(), elsewhere)
	require.NoError(t, err)
	require.NoError(t, verify(tagged, version))
	for _, module := range []string{"kit", "cmd/mini", "bench"} {
		must(t, filepath.Join(elsewhere, module), "go", "build", "-mod=readonly", "-buildvcs=false", "-o", os.DevNull, "./...")
	}
	for name, value := range map[string]string{"GOWORK": "", "GOPROXY": "off", "GOMODCACHE": t.TempDir()} { // before anybody can get it
		t.Setenv(name, value)
	}
	must(t, elsewhere, "go", "vet", "./...", "./kit/...", "./cmd/mini/...", "./bench/...")
}

func TestCommitIsRefused(t *testing.T) {
	root := repository(t, miniature())
	refused := func(version, says string) {
		t.Helper()
		_, err := runTool(t, root, "commit", "-version", version)
		require.ErrorContains(t, err, says)
	}
	path := filepath.Join(root, "new.txt")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	refused(version, "commit what is changed first:\n?? new.txt")
	require.NoError(t, os.Remove(path))
	hook := filepath.Join(root, ".git", "hooks", "commit-msg")
	require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\nexit 1\n"), 0o700)) //nolint:gosec // it is run
	refused(version, "git commit")
	require.NoError(t, os.Remove(hook))
	_, err := runTool(t, root, "commit", "-version", version)
	require.NoError(t, err)
	refused(version, "a branch named 'release/v0.1.0' already exists")
	must(t, root, "git", "tag", "v0.2.0")
	refused(version, "v0.1.0 is no version after v0.2.0")
	refused("v0.2.0", "v0.2.0 is no version after v0.2.0")
	commitFiles(t, root, miniature().with(t, changelog, "- Everything.\n", ""))
	refused("v0.3.0", errNothingNew.Error())
	branches, err := exec.CommandContext(t.Context(), "git", "-C", root, "branch", "--list", "release/*").Output()
	require.NoError(t, err)
	require.Equal(t, "release/v0.1.0", strings.TrimSpace(string(branches)), "what is refused leaves nothing")
}
