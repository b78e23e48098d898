package session

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/records"
)

// The client knows the engines by these interfaces alone.

// Tenure is the time of one owner id: from the first command that the client sends with this id until nothing of the
// tenure is left in Redis. Its methods are safe for concurrent use.
type Tenure interface {
	lease.Owner

	// Target returns the target of the tenure's name.
	Target() *Target
	// Item returns the lease of the tenure. The keeper keeps this lease once the tenure holds.
	Item() *lease.Item
	// Renewal returns the request that renews the lease for d.
	Renewal(d time.Duration) lua.Renewal
	// Batch returns a number that is the same for tenures which one script can renew.
	Batch() uint16
	// Weight returns how many entries in Redis a renewal changes.
	Weight() int
	// Hear takes a message to the tenure. It runs where the client reads the subscription, so it neither blocks nor
	// sends.
	Hear(m lua.Message)
	// Interrupt ends the wait of the tenure, because the client is closing.
	Interrupt()
	// Tell returns what other clients may know of the tenure.
	Tell() records.Telling
	// HeldName returns the name that the tenure holds; empty: it does not hold.
	HeldName() string
}

// Queue is a queue in which tenures wait. Its methods are safe for concurrent use.
type Queue interface {
	// Name returns the key that the tenures wait for: the queue's name with the client's key prefix.
	Name() string
	// CloseLines ends, for this reason, the waits of goroutines that have no tenure yet.
	CloseLines(reason error)
	// RecheckAll asks Redis for every waiter.
	RecheckAll()
	// AskAround asks for every waiter, one after the other. It calls pause in between, and ends when pause returns
	// false.
	AskAround(pause func() bool)
	// ClockSet says that the server's clock was set. An earlier reading of the clock may date no grant any more.
	ClockSet()
	// TellLine returns what other clients may know of the goroutines that wait and have no tenure.
	TellLine(now time.Time) []records.Telling
	// Leaving reports what is still open about waiters that this process gave up. unheard: Redis has not heard yet
	// that one of these waiters is gone. unsettled: the client still has something to send for them.
	Leaving() (unheard, unsettled bool)
}

// Member is a primitive in which a client takes part without holding. A closing client must leave it.
type Member interface {
	// Resign leaves the primitive, or gives up when ctx ends.
	Resign(ctx context.Context)
}

// tenureOf returns the tenure whose lease is i.
func tenureOf(i *lease.Item) Tenure { return i.Owner.(Tenure) }
