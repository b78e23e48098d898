package session

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/lease"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// What the client knows of the engines is no more than this.

// Tenure is one owner id: from the first command that is sent with it until nothing of it is left in Redis.
type Tenure interface {
	lease.Owner

	// Target is the name that it is of.
	Target() *Target
	// Item is its lease, once it is held.
	Item() *lease.Item
	// Renewal renews its lease; Batch says with which others in one script, and Weight how many entries in Redis
	// that changes.
	Renewal(d time.Duration) lua.Renewal
	Batch() uint16
	Weight() int
	// Hear takes a message to it. It runs where the subscription is read.
	Hear(m lua.Message)
	// Interrupt ends its wait, because the client is closing.
	Interrupt()
	// HeldName is the name of what it holds; empty when it does not hold.
	HeldName() string
}

// Queue is one in which tenures wait.
type Queue interface {
	// RecheckAll has Redis asked for every waiter, AskAround does so slowly, and ClockSet says that what is known of the
	// server's clock is over.
	RecheckAll()
	AskAround(pause func() bool)
	ClockSet()
}

// Member is what a closing client must leave.
type Member interface {
	// Resign leaves, or gives up when ctx ends.
	Resign(ctx context.Context)
}
