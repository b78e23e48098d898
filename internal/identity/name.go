package identity

import (
	"encoding/json"
	"unicode/utf8"
)

// Name is the name of a lock, or of whatever else, as it stands in JSON. A name is bytes, as a digest may be. JSON has
// text alone: what is no UTF-8 would come back as something else, and two names as one. So a name that is text is a
// string there, and any other one is an object, with the bytes in base64.
type Name string

// coded is a name that is no text.
type coded struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON is of [json.Marshaler].
func (n Name) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(n)) {
		return json.Marshal(string(n))
	}
	return json.Marshal(coded{[]byte(n)})
}

// UnmarshalJSON is of [json.Unmarshaler].
func (n *Name) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '{' {
		var c coded
		err := json.Unmarshal(text, &c)
		*n = Name(c.Base64)
		return err
	}
	return json.Unmarshal(text, (*string)(n))
}
