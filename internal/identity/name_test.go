package identity_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/identity"
)

// Every name comes back from JSON as it was, and one that is text is a string there.
func FuzzName(f *testing.F) {
	for _, name := range []string{"", "orders:42", "order:\xff\xfe\x01", "blob:\xe2\x28\xa1", "\ufffd", `{"base64":"eA=="}`, "<&>\u2028"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		text, err := json.Marshal(identity.Held{Key: identity.Name(name), Owner: "a:1"})
		require.NoError(t, err)
		var back identity.Held
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, name, string(back.Key))
		var plain struct {
			K any `json:"k"`
		}
		require.NoError(t, json.Unmarshal(text, &plain))
		_, isText := plain.K.(string)
		require.Equal(t, utf8.ValidString(name), isText)
	})
}

// What others have written is no name, and is refused.
func TestNotAName(t *testing.T) {
	for _, text := range []string{`1`, `["a"]`, `{"base64":1}`, `{"base64":"*"}`} {
		var n identity.Name
		require.Error(t, json.Unmarshal([]byte(text), &n), text)
	}
}
