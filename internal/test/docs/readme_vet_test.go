package docs_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the documents show is nothing that latchkeyvet reports. It is a module of its own, and is built there.
func TestReadmeIsVetted(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "latchkeyvet.exe") // Windows runs nothing else, and others do not mind
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", tool, "./cmd/latchkeyvet")
	build.Dir = "latchkeyvet"
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	vet := func(snippets map[string][]string) (string, error) {
		overlay, _ := programOf(t, snippets)
		check := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+tool, "-overlay", overlay, "./docs")
		output, err := check.CombinedOutput()
		return string(output), err
	}
	said, err := vet(snippetsOf(t))
	require.NoError(t, err, said)
	said, err = vet(map[string][]string{"wrong.md": {"_, err = lock.Lock(ctx)\n"}})
	require.Error(t, err)
	require.Contains(t, said, "what Lock returns is assigned to _")
}
