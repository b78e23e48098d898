// Package barrier is a cyclic barrier across processes, as java.util.concurrent.CyclicBarrier is across threads: a
// number of parties wait for each other, and go on together, again and again.
//
//	b, err := barrier.New(c, "step", 8)
//	...
//	defer b.Leave(ctx)
//	for {
//		work()
//		arrival, err := b.Await(ctx)                          // until all 8 have come
//		if err != nil { return err }                          // ErrBroken: one of them will not come
//	}
//
// # Guarantees
//
// No party goes on before all parties of the generation have arrived. Then one message releases all of them, in all
// processes, and the next generation begins. Each [Barrier.Await] arrives once, also if its reply was lost and it was
// sent again.
//
// All parties of a generation go on, or none. The generation is broken if the context of a party ends while it waits,
// if its client is closed, if its action fails, or if its process dies, is stopped or cannot reach Redis for its lease
// ([WithLease]). Parties that wait get [ErrBroken], 100 ms after the end of a lease at most, and later parties get it
// until [Barrier.Reset].
//
// A failover that loses an arrival breaks the generation too; if it was the last one, some parties may have gone on. If
// Redis has lost the generation, parties that wait get [ErrForgotten]. If a party is killed and comes back before its
// lease is over, it counts as two: set a short lease, or call Reset first.
//
// # Members
//
// The barrier also waits for parties that are at work. The first Await of a client, or [Barrier.Join], makes the
// client a member, until [Barrier.Leave] or until the client is closed. There is one membership for each name and
// client. If its lease ends, the barrier is broken. So a client that will not come again has to leave, and a process
// that ends by os.Exit runs no defer: it breaks the barrier. [WithoutMembership] does without all this.
//
// Redisson has no barrier. docs/operations.md has the keys, which live for two days from the last use at most.
package barrier

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// MaxParties is the greatest number of parties.
const MaxParties = math.MaxInt32

// The errors that only barriers have, for errors.Is.
var (
	// ErrBroken says that the generation is broken: none of its parties goes on. Its text says why.
	ErrBroken = errors.New("barrier broken")
	// ErrForgotten says that Redis has lost the generation of a party that arrived: the others may have gone on.
	ErrForgotten = errors.New("redis does not know any more whether this generation went on")
	// ErrParties says that others wait for another number of parties. They wait on.
	ErrParties = errors.New("others wait for another number of parties")
)

// Barrier is a barrier of one name. Any number of goroutines share it; each Await is a party of its own. The zero
// value is not usable: see [New].
type Barrier struct {
	group   *group
	name    string
	parties int
	action  func(context.Context) error
	joins   bool // an Await makes the client a member
}

// New returns the barrier of a name, for a number of parties from 1 to [MaxParties]. It does no I/O. The name is as
// for package rlock, and no other kind of primitive may have it. New returns ErrInvalid for other names and numbers, a
// nil client, options out of range, and a client with latchkey.WithReplicas.
func New(c *latchkey.Client, name string, parties int, opts ...Option) (*Barrier, error) {
	var o settings
	for _, option := range opts {
		if option != nil {
			option(&o)
		}
	}
	if parties < 1 || parties > MaxParties {
		return nil, fail.Wrap(name, fail.Invalid("the number of parties must be from 1 to %d, not %d", MaxParties, parties))
	}
	b := &Barrier{name: name, parties: parties, action: o.action, joins: !o.withoutMembership}
	var err error
	if b.group, err = groupOf((*session.Handle)(c).Client(), name); err != nil {
		return nil, fail.Wrap(name, err)
	}
	lease := (*session.Handle)(c).Client().Options.Lease
	if o.lease != nil {
		lease = *o.lease
	}
	if err := session.ValidLease(lease); err != nil {
		return nil, fail.Wrap(name, err)
	}
	b.group.setLease(lease)
	return b, nil
}

// Name returns the name that New was given.
func (b *Barrier) Name() string { return b.name }

// Parties returns the number that New was given.
func (b *Barrier) Parties() int { return b.parties }

// Arrival is what a party that goes on knows.
type Arrival struct {
	Generation int64 // the same for all that go on together; grows with each
	// Index is how many parties had arrived before: from 0 to parties - 1, the one that ran the action.
	Index int
}

// Await arrives, and waits until all parties have. It makes the client a member. It survives an outage of Redis that
// ends before ctx and the lease do.
//
// If ctx ends during the wait, the generation is broken, and the error is the context's; if the last party came just
// then, Await succeeds. If Redis does not answer whether the party has arrived, the error has ErrUnknownOutcome, and
// the client goes on breaking the generation. [ErrBroken], [ErrForgotten], [ErrParties], and errors of Redis that do
// not pass by themselves, come at once.
func (b *Barrier) Await(ctx context.Context) (Arrival, error) {
	began := time.Now()
	arrival, err := b.await(ctx)
	b.group.Observe(ctx, b.name, began, err)
	return arrival, err
}

// Join makes the client a member until [Barrier.Leave]: its death breaks the barrier from now on.  It is sent until Redis answers or ctx ends.
func (b *Barrier) Join(ctx context.Context) error { return b.group.join(ctx, b.name) }

// Leave ends the membership of the client. If parties of other clients wait for more, it breaks their generation. It
// is sent although ctx has ended, as in a defer, and then for the command timeout. After that the error has
// ErrUnknownOutcome, and it goes on in the background, until the lease ends.
func (b *Barrier) Leave(ctx context.Context) error {
	if err := b.group.leave(ctx); err != nil {
		return fail.Wrap(b.name, err)
	}
	return nil
}

// Reset begins a new generation, in which no party has arrived. If parties wait, it breaks their generation. Members
// stay members. It is sent until Redis answers or ctx ends. Without an answer the error has ErrUnknownOutcome.
func (b *Barrier) Reset(ctx context.Context) error {
	return b.group.Change(ctx, b.group.Client.Closing, b.name, func(ctx context.Context, o lua.Once) error {
		return b.group.Client.Conn.ResetBarrier(ctx, b.group.Keys, o)
	})
}
