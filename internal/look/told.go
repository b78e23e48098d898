package look

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"

	"github.com/latchkey-go/latchkey/internal/identity"
)

// Told is a text that came from Redis, where anybody may have written it who may write there. Printed, and as JSON, it has
// nothing that a terminal would obey.
type Told string

func (t Told) String() string { return identity.Printable(string(t)) }

// MarshalJSON has the same text for who reads the JSON, and escapes for who sees it.
func (t Told) MarshalJSON() ([]byte, error) {
	plain, err := json.Marshal(string(t))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, r := range string(plain) {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff: // in JSON they are two
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes(), nil
}
