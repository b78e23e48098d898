package look

import (
	"encoding/json"
	"fmt"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// What anybody may have written is read as it is, and has nothing that a terminal would obey.
func TestTold(t *testing.T) {
	for text, want := range map[string]string{
		"näch\"tlich":   `"näch\"tlich"`,
		"\x1b[2J\u009b": "\"\\u001b[2J\\u009b\"",
		"a\U000e0001b":  "\"a\\udb40\\udc01b\"",
	} {
		shown, err := json.Marshal(Told(text))
		require.NoError(t, err)
		require.Equal(t, want, string(shown))
		var read Told
		require.NoError(t, json.Unmarshal(shown, &read))
		require.Equal(t, Told(text), read)
		for _, r := range fmt.Sprint(Told(text)) {
			require.True(t, unicode.IsPrint(r), "%q", r)
		}
	}
}
