package session

import (
	"crypto/rand"
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// IDs makes the ids of one client: of owners, commands and memberships. An id is the client's, a number, and
// a secret. No number is used twice. Only this process can compute the secret. So a user who may publish, but
// not read what is in Redis, cannot write a message to one of our waiters. It is safe for concurrent use.
type IDs struct {
	// Client is the id of the client.
	Client string

	seed maphash.Seed // a user who can only publish sees nothing from which it could be learnt
	last atomic.Uint64
}

// newIDs returns those of a new client. The id of the client begins with the prefix of its keys and an end
// mark, and so does the name of its inbox. So access rules can tell the inboxes of tenants apart, also where
// the prefix of one begins with that of another.
func newIDs(prefix string) *IDs {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_./", r):
			return r
		default: // it may mean something in the wire format, in a pattern or in a hash tag
			return '_'
		}
	}, prefix)
	if readable != "" {
		readable += "="
	}
	return &IDs{Client: readable + rand.Text()[:randomLength], seed: maphash.MakeSeed()}
}

// randomLength is how many characters of a client's id are random, of five bits each. Redis keeps small
// hashes small while nothing in them is longer than 64 bytes. A holder of permits must fit into that
// (permit/holder.lua).
const randomLength = 16

// Next returns a number that has not been used, from 1.
func (i *IDs) Next() uint64 { return i.last.Add(1) }

func (i *IDs) secret(n uint64) uint32 { return uint32(maphash.Comparable(i.seed, n) % lua.Secrets) }

// ID returns the id of a number.
func (i *IDs) ID(n uint64) string { return lua.OwnerWith(i.Client, n, i.secret(n)) }

// Suffix returns the id of a number without the client's.
func (i *IDs) Suffix(n uint64) string { return lua.Number(n, i.secret(n)) }

// made reports whether a message names an id that was made here.
func (i *IDs) made(m lua.Message) bool {
	return m.Number > 0 && m.Number <= i.last.Load() && m.Secret == i.secret(m.Number)
}
