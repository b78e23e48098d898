package lua_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Any text has a valid name, and no two texts have the same one.
func TestAnyName(t *testing.T) {
	names := map[string]string{}
	for _, text := range []string{
		"", "a", "%", "%25", "{", "}", "%7B", "{}", "{a}b", "}{", "a b", "\x00\xff", strings.Repeat("x", 512), strings.Repeat("x", 513),
		strings.Repeat("{", 171), strings.Repeat("%7B", 171), "%sha256-00", strings.Repeat("x", 100_000),
	} {
		name := lua.AnyName("app:", text)
		require.True(t, strings.HasPrefix(name, "app:"))
		require.NotContains(t, names, name, "of %q and %q", names[name], text)
		names[name] = text
		_, err := lua.NewKeys(lua.Locks, name, true)
		require.NoError(t, err, "%q", text)
	}
	require.Equal(t, "app:example.com", lua.AnyName("app:", "example.com"))
}
