package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A version has to say what became of the API since the last one, of each module that has one.
func TestCompare(t *testing.T) {
	root, proxy := repository(t, miniature()), t.TempDir()
	said, err := runTool(t, root, "commit", "-version", version)
	require.NoError(t, err)
	tag(t, root, said)
	must(t, root, "git", "tag", "-d", "cmd/mini/"+version)
	_, err = publish(proxy, release(t, miniature()), version, today)
	require.NoError(t, err)
	here, err := exec.CommandContext(t.Context(), "go", "env", "GOPROXY").Output()
	require.NoError(t, err)
	t.Setenv("GOPROXY", fileURL(proxy)+","+strings.TrimSpace(string(here)))
	t.Setenv("TMPDIR", t.TempDir())

	became := func(files tree, version string) (string, error) {
		t.Helper()
		after, err := released(files, version, today)
		require.NoError(t, err)
		var out bytes.Buffer
		err = visit(t.Context(), options{root: root, version: version, date: today, out: &out}, after, []user{{"gorelease", compare}})
		return out.String(), err
	}
	more := miniature().with(t, "kit/kit.go", "// Twice", "// Once is one.\nfunc Once() int { return 1 }\n\n// Twice")
	out, err := became(more, "v0.1.1")
	require.NoError(t, err)
	require.Contains(t, out, mini+"/kit since v0.1.0\n")
	require.Contains(t, out, "Once: added")
	require.NotContains(t, out, "cmd/mini since", "it has no version yet")

	other := miniature().with(t, "mini.go", "Answer() int ", "Answer() int64 ").with(t, "kit/kit.go", "Twice() int ", "Twice() int64 ")
	_, err = became(other, "v0.1.1")
	require.ErrorContains(t, err, "v0.1.1 is a patch of v0.1.0, and these changes need a minor version")
	require.ErrorContains(t, err, "Answer: changed from func() int to func() int64")
	_, err = became(other, "v0.2.0")
	require.NoError(t, err)

	_, err = became(miniature().with(t, "mini.go", "return 42", "return"), "v0.2.0")
	require.ErrorContains(t, err, "not enough return values")
}
