package session

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/records"
)

// The client knows no more of the engines than this.

// Tenure is one owner id, from the first command that is sent with it until nothing of it is left in Redis.
// Its methods are safe for concurrent use.
type Tenure interface {
	lease.Owner

	// Target returns the name that it is of.
	Target() *Target
	// Item returns its lease, which is kept once it holds.
	Item() *lease.Item
	// Renewal returns what renews its lease for d.
	Renewal(d time.Duration) lua.Renewal
	// Batch returns a number that is the same for tenures which one script can renew.
	Batch() uint16
	// Weight returns how many entries in Redis a renewal changes.
	Weight() int
	// Hear takes a message to it. It runs where the subscription is read: it neither blocks nor sends.
	Hear(m lua.Message)
	// Interrupt ends its wait, because the client is closing.
	Interrupt()
	// Tell returns what others may know of it.
	Tell() records.Telling
	// HeldName returns the name of what it holds; empty when it does not hold.
	HeldName() string
}

// Queue is one in which tenures wait. Its methods are safe for concurrent use.
type Queue interface {
	// Name returns the key that is named by what is waited for.
	Name() string
	// CloseLines ends, for this reason, the waits of goroutines that have no tenure yet.
	CloseLines(reason error)
	// RecheckAll asks Redis for every waiter.
	RecheckAll()
	// AskAround asks for every waiter, one after the other. It calls pause in between, and ends when that
	// returns false.
	AskAround(pause func() bool)
	// ClockSet says that the server's clock was set. No grant may be dated by what was known of it before.
	ClockSet()
	// TellLine returns what others may know of the goroutines that wait and have no tenure.
	TellLine(now time.Time) []records.Telling
	// Leaving returns whether Redis has not heard yet of somebody who was given up, and whether anything is
	// still to be sent of such.
	Leaving() (unheard, unsettled bool)
}

// Member is what a closing client must leave: a primitive in which it takes part without holding.
type Member interface {
	// Resign leaves, or gives up when ctx ends.
	Resign(ctx context.Context)
}

// tenureOf is whose lease the keeper keeps with i.
func tenureOf(i *lease.Item) Tenure { return i.Owner.(Tenure) }
