package session

import (
	"hash/maphash"
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

// newIDs returns the ids of a new client.
func newIDs(client string) *IDs { return &IDs{Client: client, seed: maphash.MakeSeed()} }

// Next returns a number that has not been used, from 1.
func (i *IDs) Next() uint64 { return i.last.Add(1) }

// mostNumbers is more than any client uses: they have 16 digits where scripts compare them.
const mostNumbers = 1e15

// Follow has all further numbers be greater than one that another client has used.
func (i *IDs) Follow(n uint64) {
	for {
		last := i.last.Load()
		if last >= n || n > mostNumbers || i.last.CompareAndSwap(last, n) {
			return
		}
	}
}

func (i *IDs) secret(n uint64) uint32 { return uint32(maphash.Comparable(i.seed, n) % lua.Secrets) }

// ID returns the id of a number.
func (i *IDs) ID(n uint64) string { return lua.OwnerWith(i.Client, n, i.secret(n)) }

// Suffix returns the id of a number without the client's.
func (i *IDs) Suffix(n uint64) string { return lua.Number(n, i.secret(n)) }

// made reports whether a message names an id that was made here.
func (i *IDs) made(m lua.Message) bool {
	return m.Number > 0 && m.Number <= i.last.Load() && m.Secret == i.secret(m.Number)
}
