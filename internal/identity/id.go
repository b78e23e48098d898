// Package identity is what a client tells of itself, for those who ask who holds a lock: its id, a record in
// Redis, and the notes of its callers.
package identity

import (
	"crypto/rand"
	"strings"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// RandomLength is how many characters of a client's id are random, of five bits each. Redis keeps small
// hashes small while nothing in them is longer than 64 bytes. A holder of permits must fit into that
// (permit/holder.lua).
const RandomLength = 16

// prefixEnds stands behind the prefix in an id. No legible prefix has it.
const prefixEnds = "="

// NewID returns the id of a new client. It begins with the prefix of the client's keys and an end mark, and
// so does the name of its inbox. So access rules can tell the inboxes of tenants apart, also where the prefix
// of one begins with that of another.
func NewID(prefix string) string {
	begin := legible(prefix)
	if begin != "" {
		begin += prefixEnds
	}
	return begin + rand.Text()[:RandomLength]
}

// legible is a prefix as it stands in ids: each of its characters is one there.
func legible(prefix string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_./", r):
			return r
		default: // it may mean something in the wire format, in a pattern or in a hash tag
			return '_'
		}
	}, prefix)
}

// Key is that of the record of a client with this key prefix and id.
func Key(prefix, id string) string { return lua.ClientRecord(prefix + id) }

// Pattern is that of the keys of records, for SCAN.
const Pattern = "latchkey_client:*"

// ClientOf returns the id of the client whose record a key is, if that client has this very prefix.
func ClientOf(prefix, key string) (id string, ok bool) {
	_, name, _ := strings.Cut(key, ":")
	if !strings.Contains(prefix, "{") {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}")
	}
	id, ok = strings.CutPrefix(name, prefix)
	return id, ok && KeyBeside(prefix+"a name", id) == key
}

// KeyBeside is Key for a client of which only the id is known, and a key that it has used: that begins with
// its prefix, and the id tells how long this is. It is empty for an id that is none of ours.
func KeyBeside(key, id string) string {
	begin, random, found := strings.Cut(id, prefixEnds)
	if !found {
		begin, random = "", id
	}
	if len(random) != RandomLength || strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return ""
	}
	end, characters := 0, 0
	for end = range key {
		if characters == len(begin) {
			break
		}
		characters++
	}
	if prefix := key[:end]; legible(prefix) == begin {
		return Key(prefix, id)
	}
	return ""
}
