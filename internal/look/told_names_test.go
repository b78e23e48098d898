package look

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What clients tell is matched here, as Redis matches what it finds.
func TestMatcher(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		matches       bool
	}{
		{"*", "a", true},
		{"*", "a\nb", true},
		{"ord?rs:*", "orders:42", true},
		{"ord?rs:*", "the orders:42", false},
		{"a.b", "axb", false},
		{`a\*b`, "a*b", true},
		{`a\*b`, "axb", false},
		{"[ab]", "a", false}, // SCAN finds it
	} {
		require.Equal(t, test.matches, matcher(test.pattern).MatchString(test.name), "%q %q", test.pattern, test.name)
	}
}
