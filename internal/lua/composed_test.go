package lua_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// What Redis runs is what was reviewed: the files of testdata/composed. LATCHKEY_UPDATE=1 writes them.
func TestComposedScriptsAreAsReviewed(t *testing.T) {
	folder := filepath.Join("testdata", "composed")
	if os.Getenv("LATCHKEY_UPDATE") != "" {
		require.NoError(t, os.RemoveAll(folder))
		require.NoError(t, os.MkdirAll(folder, 0o755))
	}
	var files []string
	composed := lua.Composed()
	for _, name := range slices.Sorted(maps.Keys(composed)) {
		file := filepath.Join(folder, strings.ReplaceAll(name, "/", "_")+".lua")
		files = append(files, file)
		text := strings.Join(composed[name], "-- the same for names of another kind\n")
		if os.Getenv("LATCHKEY_UPDATE") != "" {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
		reviewed, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(reviewed), text, "LATCHKEY_UPDATE=1 go test ./internal/lua -run %s writes what is to be reviewed", t.Name())
	}
	found, err := filepath.Glob(filepath.Join(folder, "*.lua"))
	require.NoError(t, err)
	require.Equal(t, files, found)
}
