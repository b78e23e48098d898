package session

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// IDs makes the ids of one client: ids of owners, commands and memberships. An id is the client's id, a number, and a
// secret. No number is used twice. Only this process can compute the secret. So a user who may publish, but may not
// read what is in Redis, cannot write a message to one of our waiters. Methods are safe for concurrent use.
type IDs struct {
	// Client is the id of the client.
	Client string

	seed maphash.Seed // a user who can only publish sees nothing that tells the seed
	last atomic.Uint64
}

func newIDs(client string) *IDs { return &IDs{Client: client, seed: maphash.MakeSeed()} }

// Next returns a number that has not been used, from 1.
func (i *IDs) Next() uint64 { return i.last.Add(1) }

// mostNumbers is greater than any number that a client uses. Where scripts compare numbers, these have 16 digits.
const mostNumbers = 1e15

// Follow makes all further numbers greater than n, a number that another client has used.
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

// Suffix returns the id of a number, without the client's id.
func (i *IDs) Suffix(n uint64) string { return lua.Number(n, i.secret(n)) }

// made reports whether i has made the id that a message names.
func (i *IDs) made(m lua.Message) bool {
	return m.Number > 0 && m.Number <= i.last.Load() && m.Secret == i.secret(m.Number)
}
