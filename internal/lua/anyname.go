package lua

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longestText is how many bytes a text has at most that can be read in a name.
const longestText = 512

var escaped = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")

// AnyName returns a valid name for a text that others choose, which may be any: the prefix and the text, of
// which percent signs and braces are escaped as in URLs. Of a long text it is a hash. Different texts have
// different names.
func AnyName(prefix, text string) string {
	readable := escaped.Replace(text)
	if len(readable) > longestText {
		sum := sha256.Sum256([]byte(text))
		readable = "%sha256-" + hex.EncodeToString(sum[:]) // no text is escaped to that
	}
	return prefix + readable
}
