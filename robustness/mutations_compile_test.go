package robustness

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What each mutation makes of Go code compiles: what it names may have another name by now.
func TestMutationsCompile(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	for _, m := range Mutations {
		replaced, packages := map[string]string{}, map[string]bool{}
		for n, e := range m.Edits {
			path := filepath.Join(root, filepath.FromSlash(e.File))
			if filepath.Ext(path) != ".go" {
				continue
			}
			before := path
			if already, ok := replaced[path]; ok {
				before = already
			}
			text, err := os.ReadFile(before)
			require.NoError(t, err)
			changed := filepath.Join(t.TempDir(), fmt.Sprint(n, ".go"))
			require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(text), e.Old, e.New, 1)), 0o600))
			replaced[path], packages[filepath.Dir(path)] = changed, true
		}
		if len(replaced) == 0 {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			text, err := json.Marshal(map[string]any{"Replace": replaced})
			require.NoError(t, err)
			overlay := filepath.Join(t.TempDir(), "overlay.json")
			require.NoError(t, os.WriteFile(overlay, text, 0o600))
			for folder := range packages {
				build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, ".")
				build.Dir = folder
				output, err := build.CombinedOutput()
				require.NoError(t, err, "%s", output)
			}
		})
	}
}
