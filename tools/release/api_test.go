package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/exp/apidiff"
)

// The API is compared with that of the last tag, of each module that has one, and the version must say what
// became of it.
func TestAPI(t *testing.T) {
	root := repository(t, miniature())
	out, err := runTool(t, root, "api")
	require.NoError(t, err)
	require.Contains(t, out, "nothing before the first release")
	said, err := runTool(t, root, "commit", "-version", version)
	require.NoError(t, err)
	tag(t, root, said)

	says := func(files tree, version, want string) {
		t.Helper()
		require.NoError(t, files.write(root))
		out, err := runTool(t, root, "api", "-version", version)
		require.NoError(t, err, out)
		require.Contains(t, out, want)
	}
	refuses := func(files tree, version, want string) {
		t.Helper()
		require.NoError(t, files.write(root))
		out, err := runTool(t, root, "api", "-version", version)
		require.ErrorContains(t, err, want, out)
	}
	says(miniature(), "v0.1.1", "the version after v0.1.0 is a patch one at least")
	says(miniature(), version, "nothing before the first release")
	hidden := miniature().with(t, "internal/in/i.go", "Secret = 1", "Other = 2")
	says(hidden, "v0.1.1", "a patch one")
	more := miniature().with(t, "kit/kit.go", "// Twice", "// Once is one.\nfunc Once() int { return 1 }\n\n// Twice")
	says(more, "v0.1.1", mini+"/kit since v0.1.0\nCompatible changes:\n- Once: added")
	other := miniature().with(t, "mini.go", "Answer() int ", "Answer() int64 ").with(t, "kit/kit.go", "Twice() int ", "Twice() int64 ")
	refuses(other, "v0.1.1", "v0.1.1 after v0.1.0 is a patch version, and these changes need a minor one")
	says(other, "v0.2.0", "- Answer: changed from func() int to func() int64")
	refuses(miniature().with(t, "mini.go", "return 42", "return"), "v0.2.0", "not enough return values")
}

func TestStepFor(t *testing.T) {
	added, removed := apidiff.Change{Message: "A: added", Compatible: true}, apidiff.Change{Message: "A: removed"}
	for _, c := range []struct {
		last    string
		changes []apidiff.Change
		want    step
	}{
		{"v0.1.0", nil, patch},
		{"v0.1.0", []apidiff.Change{added}, patch},
		{"v0.1.0", []apidiff.Change{removed, added}, minor},
		{"v1.2.3", nil, patch},
		{"v1.2.3", []apidiff.Change{added}, minor},
		{"v1.2.3", []apidiff.Change{removed, added}, major},
	} {
		require.Equal(t, c.want, stepFor(c.last, apidiff.Report{Changes: c.changes}), "%v", c)
	}
	require.Equal(t, []step{patch, minor, major, patch}, []step{
		stepOf("v0.1.0", "v0.1.1"), stepOf("v0.1.0", "v0.2.0"), stepOf("v0.1.0", "v1.0.0"), stepOf("v1.0.0-rc.1", "v1.0.0"),
	})
	require.Equal(t, []string{"v0.1.0", "v0.2.0", "v1.10.0"}, []string{nextVersion(""), nextVersion("v0.1.7"), nextVersion("v1.9.0")})
}
