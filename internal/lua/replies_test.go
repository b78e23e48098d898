package lua

import (
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table in the comment is the one that scripts are composed with, and each name is one that a script has.
func TestRepliesAreDocumented(t *testing.T) {
	source, err := os.ReadFile("replies.go")
	require.NoError(t, err)
	documented := map[string]int{}
	for _, row := range regexp.MustCompile(`(?m)^//\t(-\d+) +([A-Z]+) `).FindAllSubmatch(source, -1) {
		n, err := strconv.Atoi(string(row[1]))
		require.NoError(t, err)
		documented[string(row[2])] = n
	}
	require.Equal(t, codes, documented)
	var scripts strings.Builder
	require.NoError(t, fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		scripts.Write(text)
		return err
	}))
	for name := range codes {
		require.Contains(t, scripts.String(), "REPLY_"+name)
	}
	require.PanicsWithValue(t, "lua: there is no reply NOBODY", func() { MustCompose("return REPLY_NOBODY") })
}
