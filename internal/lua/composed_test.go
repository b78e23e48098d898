package lua_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// The scripts that run most often. They are reviewed whole, with all that they include.
var reviewedWhole = []string{
	"basket/release", "basket/take", "lock/acquire", "lock/offer", "lock/release", "permit/trade", "rwlock/acquire", "rwlock/release",
}

// What Redis runs is what was reviewed: the files of testdata/composed. Of most scripts they have the digest by which Redis knows
// them. LATCHKEY_UPDATE=1 writes the files.
func TestComposedScriptsAreAsReviewed(t *testing.T) {
	composed := lua.Composed()
	files := map[string]string{}
	var digests strings.Builder
	for _, name := range slices.Sorted(maps.Keys(composed)) {
		if slices.Contains(reviewedWhole, name) {
			files[strings.ReplaceAll(name, "/", "_")+".lua"] = strings.Join(composed[name], "-- the same for names of another kind\n")
			continue
		}
		for _, text := range composed[name] {
			fmt.Fprintf(&digests, "%s %s %d lines\n", lua.SHA(text), name, strings.Count(text, "\n"))
		}
	}
	require.Len(t, files, len(reviewedWhole))
	files["digests"] = digests.String()

	folder := filepath.Join("testdata", "composed")
	if os.Getenv("LATCHKEY_UPDATE") != "" {
		require.NoError(t, os.RemoveAll(folder))
		require.NoError(t, os.MkdirAll(folder, 0o755))
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		}
	}
	found, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, found, len(files))
	for name, text := range files {
		reviewed, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Equal(t, string(reviewed), text, "go run ./internal/lua/show prints a script; LATCHKEY_UPDATE=1 go test ./internal/lua -run %s writes "+
			"what is to be reviewed", t.Name())
	}
}
