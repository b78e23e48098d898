package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The command reports, and fails, by itself and in go vet. A flag leaves an analyzer out.
func TestCommand(t *testing.T) {
	command := filepath.Join(t.TempDir(), "latchkeyvet.exe") // Windows runs nothing else, and others do not mind
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", command, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	for _, way := range []struct {
		name string
		args []string
	}{
		{"by itself", []string{command}},
		{"in go vet", []string{"go", "vet", "-vettool=" + command}},
	} {
		t.Run(way.name, func(t *testing.T) {
			run := func(more ...string) (string, error) {
				args := slices.Concat(way.args[1:], more)
				c := exec.CommandContext(t.Context(), way.args[0], args...)
				c.Dir = filepath.Join("..", "..", "testdata")
				c.Env = append(os.Environ(), "GOWORK=")
				out, err := c.CombinedOutput()
				return string(out), err
			}
			out, err := run("./errcompare", "./lostunlock")
			require.Error(t, err)
			require.Contains(t, out, "wrong.go:13:5: latchkey.ErrLost is compared by ==")
			require.Contains(t, out, "hold is not given back on the way to the return")
			out, err = run("-errcompare=false", "./errcompare")
			require.NoError(t, err, out)
			out, err = run("./elsewhere")
			require.NoError(t, err, out)
		})
	}
}
