package session

import (
	"crypto/rand"
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// ids makes the ids of one client: of owners, commands and memberships. None is used twice. Each has a part
// that only this process can compute, so that whoever may publish, but not read what is in Redis, cannot write
// a message to one of our waiters.
type ids struct {
	Client string
	seed   maphash.Seed // who can only publish sees nothing from which it could be learnt
	last   atomic.Uint64
}

// newIDs returns those of a new client. The id of the client begins with the prefix of its keys: so does the
// name of its inbox, and access rules can tell the inboxes of tenants apart.
func newIDs(prefix string) *ids {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_./", r):
			return r
		default: // it may be one that the wire format, a pattern or a hash tag means something by
			return '_'
		}
	}, prefix)
	return &ids{Client: readable + rand.Text()[:random], seed: maphash.MakeSeed()}
}

// random is how many characters of a client's id are random, of five bits each. Redis keeps small hashes
// small while nothing in them is longer than 64 bytes: that has to do for a holder of permits
// (permit/holder.lua).
const random = 16

// next returns a number that has not been used.
func (i *ids) Next() uint64 { return i.last.Add(1) }

func (i *ids) secret(n uint64) uint32 { return uint32(maphash.Comparable(i.seed, n) % lua.Secrets) }

// id returns the id of a number.
func (i *ids) ID(n uint64) string { return lua.OwnerWith(i.Client, n, i.secret(n)) }

// number is an id without the client.
func (i *ids) Text(n uint64) string { return lua.Number(n, i.secret(n)) }

// made reports whether a message names an id that was made here.
func (i *ids) made(m lua.Message) bool {
	return m.Number > 0 && m.Number <= i.last.Load() && m.Secret == i.secret(m.Number)
}
