// Package barrier is a cyclic barrier across processes, as java.util.concurrent.CyclicBarrier is across
// threads: a number of parties wait for each other, and go on together, again and again.
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
// sent again: Redis keeps a record of it for ten minutes at most, and the client gives up after nine.
//
// All parties of a generation go on, or none. If one will not come, the generation is broken: parties that wait get
// [ErrBroken] at once, and later parties get it until [Barrier.Reset]. A party will not come if its context ends while
// it waits, if its client is closed, if its action fails, or if its process dies, is stopped or cannot reach Redis for
// its lease ([WithLease]). The others learn of the end of a lease within 100 ms. The exception is a failover that
// loses the arrival of the last party: some may have gone on already.
//
// If a party is killed and comes back before its lease is over, it counts as two. If your processes restart so fast,
// set a short lease, or call Reset first.
//
// If a restart or a failover of Redis has lost one arrival, the generation is broken, too, within a third of the lease
// of its client, or two seconds. If Redis has lost the generation, no process can tell whether it went on: in the same
// time, parties that wait get [ErrForgotten], and a new generation begins.
//
// # Members
//
// The barrier also waits for parties that are at work. The first Await of a client, or [Barrier.Join], makes the
// client a member, until [Barrier.Leave] or until the client is closed. The client renews the lease of its membership
// also during the work. If the lease is over, the barrier is broken.
//
// There is one membership for each name and client, for all goroutines and Barriers. A client that will not come again
// has to leave. A party that was never there cannot be missed: if others must not wait for it in vain, it calls Join
// before they wait. A process that ends by os.Exit or log.Fatal runs no defer: it counts as dead, and breaks the
// barrier.
//
// A process that is stopped or cut off for longer than its lease counts as dead. Later its Leave does nothing, and its
// next Await finds the barrier broken, or joins again if the barrier was reset. [WithoutMembership] does without all
// this.
//
// # Costs
//
// All goroutines of a process that wait share one subscription, and one command every third of the lease, or two
// seconds. A member's client sends that command also while none of them waits.
//
// # In Redis
//
// The keys of a barrier named N (after the key prefix) are N, latchkey_arrivals:{N}, latchkey_members:{N}, and those
// that begin with latchkey_done:{N}; a probe touches latchkey_probe:{N}, which never exists. The channel is
// latchkey_barrier:{N}. All are without the braces if N has some. Each key lives for two days from the last use at
// most. A barrier that Redis has forgotten is as new, also if it was broken. Redisson has no barrier.
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
	// ErrForgotten says that the party arrived, and that Redis does not know any more whether its
	// generation went on. Redis has lost it, or the party was cut off while 32 later generations broke.
	// The others may have gone on, or not.
	ErrForgotten = errors.New("redis does not know any more whether this generation went on")
	// ErrParties says that others wait for another number of parties than this Barrier has. They wait on.
	ErrParties = errors.New("others wait for another number of parties")
)

// Barrier is a barrier of one name. Any number of goroutines share it; each Await is a party of its own.
// There is no usable zero value: see [New].
type Barrier struct {
	group   *group
	name    string
	parties int
	action  func(context.Context) error
	joins   bool // an Await makes the client a member
}

// New returns the barrier of a name, for a number of parties from 1 to [MaxParties]. It does no I/O. The
// name is as for package rlock, and no other kind of primitive may have it. New returns ErrInvalid for
// other names and numbers, a nil client, options out of range, and a client with [latchkey.WithReplicas]:
// a barrier would not wait for them.
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

// Name returns the name that was given to New.
func (b *Barrier) Name() string { return b.name }

// Parties returns the number that was given to New.
func (b *Barrier) Parties() int { return b.parties }

// Arrival is what a party that goes on knows.
type Arrival struct {
	Generation int64 // the same for all that go on together; grows with each
	// Index is how many parties had arrived before: from 0, the first one, to parties - 1, the one that
	// ran the action. (Java's counts down.)
	Index int
}

// Await arrives, and waits until all parties have. It makes the client a member unless [WithoutMembership] was given,
// or Await was refused before it arrived, as by a broken barrier.
//
// If ctx ends during the wait, the generation is broken, and the error is the context's. If the last party came just
// then, Await succeeds. A party whose ctx ended before it arrived breaks nothing. If Redis does not answer in time
// whether the party has arrived, the error has ErrUnknownOutcome, and the client goes on breaking the generation in
// the background.
//
// Other errors: [ErrBroken], [ErrForgotten], [ErrParties]; ErrWrongType for foreign data; ErrClosed; and errors of
// Redis that do not pass by themselves. A party that has arrived and gets one of them has left the generation, which
// is broken. Await survives an outage of Redis that ends before ctx and the lease do.
func (b *Barrier) Await(ctx context.Context) (Arrival, error) {
	began := time.Now()
	arrival, err := b.await(ctx)
	b.group.Observe(ctx, b.name, began, err)
	return arrival, err
}

// Join makes the client a member of the barrier until [Barrier.Leave]: its death breaks the barrier from now on. To
// join twice is to join once. It works also with [WithoutMembership].
//
// It is sent until Redis answers or ctx ends. After an error the client is no member, unless it was one before.
// Errors: [ErrBroken]; ErrUnknownOutcome, after which the client leaves in the background; ErrWrongType; ErrClosed;
// and errors of Redis that do not pass by themselves.
func (b *Barrier) Join(ctx context.Context) error { return b.group.join(ctx, b.name) }

// Leave ends the membership of the client. If parties of other clients have arrived and wait for more, it breaks their
// generation, as a party that gives up does. Parties of this client that wait go on waiting. If the client is no
// member, Leave sends nothing, and returns no error.
//
// It is sent although ctx has ended, as in a defer, and then for the release timeout. After that it goes on in the
// background, and the error has ErrUnknownOutcome. It never takes longer than the lease, whose end breaks the barrier.
func (b *Barrier) Leave(ctx context.Context) error {
	if err := b.group.leave(ctx); err != nil {
		return fail.Wrap(b.name, err)
	}
	return nil
}

// Reset begins a new generation, in which no party has arrived. If parties wait, it breaks their generation.
// Members stay members. It is sent until Redis answers or ctx ends. If it may have taken effect without an
// answer, the error has ErrUnknownOutcome.
func (b *Barrier) Reset(ctx context.Context) error {
	return b.group.Change(ctx, b.group.Client.Closing, b.name, func(ctx context.Context, o lua.Once) error {
		return b.group.Client.Conn.ResetBarrier(ctx, b.group.Keys, o)
	})
}
