package look

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What comes from Redis is not obeyed by a terminal, nor by a shell.
func TestExplainQuotes(t *testing.T) {
	for name, want := range map[string]string{"orders:42": "orders:42", "a b": "'a b'", "it's; rm": `'it'\''s; rm'`, "\x1b[2J": "'�[2J'"} {
		require.Equal(t, want, quoted(name))
	}
}
