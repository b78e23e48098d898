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
// Nobody goes on before all parties of the generation have arrived. Then everybody does, in all processes, by
// one message, and the next generation begins. Each [Barrier.Await] arrives once, although its reply was lost
// and it was sent again: Redis remembers it until its client says that it was answered, with its next command
// on the same barrier, and at most ten minutes. After nine without an answer it is given up.
//
// All parties of a generation go on, or none. When one of them will not come, the generation is broken: those
// that wait get [ErrBroken] at once, and so do those that come later, until [Barrier.Reset]. That is so when
// the context of one that waits ends, when its client is closed, when its action fails, and when a process
// dies, is stopped, or cannot reach Redis for as long as its lease ([WithLease]): at most 100 ms later that
// is known. (One of them may have gone on already when a failover loses that the last party came: replication
// is asynchronous.)
//
// A party that is killed and comes back before its lease is over arrives a second time, and counts as two:
// where processes restart so fast, give arrivals a short lease, or [Barrier.Reset] first.
//
// When a restart or a failover has lost one arrival, the generation is broken, too, within a third of the
// lease of its client, or two seconds. When it has lost the generation, nobody knows whether that went on:
// who waits gets [ErrForgotten], in the same time, and a new generation begins. So does a party that was cut
// off while its generation ended, and more than 32 later ones have broken before it hears of that.
//
// # Members
//
// A party that works is waited for as well. So the first Await of a client, or [Barrier.Join], makes the
// client a member of the barrier, until [Barrier.Leave], or until the client is closed, which leaves all
// barriers. A member has a lease, which its client renews also while it works. When that is over, the barrier
// is broken, as above, whether or not the member had arrived, and whether or not anybody waits just then.
//
// There is one membership for each name and client, whatever the number of goroutines and Barriers. It does
// not end with the Barrier values: whoever will not come again has to leave. A party that was never there
// cannot be missed: who must not be waited for in vain from the beginning calls Join before the others wait.
// A process that ends by os.Exit or log.Fatal runs no defer, and so does not leave: it counts as dead, and
// the end of its lease breaks the barrier, until Reset.
//
// A process that is stopped for longer than its lease, or cut off, is taken for dead. When it goes on it is
// no member any more, and its Leave does nothing. It finds the barrier broken at its next Await, unless that
// has been reset meanwhile: then it takes part again, from that Await on. When Redis has lost who is a
// member, clients say it again with their next reading. [WithoutMembership] does without all this.
//
// # Costs
//
// How much a wait costs does not depend on how many goroutines of a process wait: they share a subscription,
// and one command every third of the lease, two seconds at most, which renews the leases for all of them. A
// member's client sends that command also while none of them waits; it reads again whenever the lease of
// another would be over, so that short leases cost more.
//
// # In Redis
//
// The keys of a barrier named N (after the key prefix) are N, latchkey_arrivals:{N}, latchkey_members:{N},
// and what begins with latchkey_done:{N}; a probe touches latchkey_probe:{N}, which never exists. The channel
// is latchkey_barrier:{N}. All are without the braces if N has some. Each key has a time to live, of two days
// from the last use at most. A barrier that has been forgotten is as new, also when it was broken. Redisson
// has no barrier.
package barrier

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// MaxParties is the greatest number of parties.
const MaxParties = math.MaxInt32

// The errors that only barriers have, for errors.Is.
var (
	// ErrBroken says that the generation is broken: none of its parties goes on. Its text says why.
	ErrBroken = errors.New("barrier broken")
	// ErrForgotten is returned to a party that arrived, when Redis does not know any more whether its generation
	// went on: Redis has lost it, or the party was cut off so long that 32 later generations have broken
	// meanwhile. The others may have gone on, or not.
	ErrForgotten = errors.New("redis does not know any more whether this generation went on")
	// ErrParties is returned to who says another number of parties than those that wait. They are not disturbed.
	ErrParties = errors.New("others wait for another number of parties")
)

// Barrier is a barrier of one name. Any number of goroutines share it, each Await being a party of its own.
// There is no usable zero value: see [New].
type Barrier struct {
	gathering *gathering
	name      string
	parties   int
	action    func(context.Context) error
	joins     bool // who awaits it is a member from then on
}

// New returns the barrier of a name, for a number of parties from 1 to [MaxParties]. It does no I/O. The name
// is as for package rlock, and of its own: one name is one primitive. It returns ErrInvalid for other names
// and numbers, a nil client and options out of range, and on a client with [latchkey.WithReplicas]: it would
// not wait for them.
func New(c *latchkey.Client, name string, parties int, opts ...Option) (*Barrier, error) {
	var o settings
	for _, option := range opts {
		if option != nil {
			option(&o)
		}
	}
	if parties < 1 || parties > MaxParties {
		return nil, session.Wrap(name, session.Invalid("the number of parties must be from 1 to %d, not %d", MaxParties, parties))
	}
	b := &Barrier{name: name, parties: parties, action: o.action, joins: !o.withoutMembership}
	var err error
	if b.gathering, err = gatheringOf((*session.Handle)(c).Client(), name); err != nil {
		return nil, session.Wrap(name, err)
	}
	lease := (*session.Handle)(c).Client().Options.Lease
	if o.lease != nil {
		lease = *o.lease
	}
	if err := session.ValidLease(lease); err != nil {
		return nil, session.Wrap(name, err)
	}
	b.gathering.setLease(lease)
	return b, nil
}

// Name returns the name that was given to New.
func (b *Barrier) Name() string { return b.name }

// Parties returns the number that was given to New.
func (b *Barrier) Parties() int { return b.parties }

// Arrival is what a party that goes on knows.
type Arrival struct {
	Generation int64 // the same for all that go on together; grows
	Index      int   // how many parties had arrived before: from 0, the first one, to parties - 1, which ran the action; Java's counts down
}

// Await arrives, and waits until all parties have. Unless [WithoutMembership] was given, the client is a
// member from then on; but one that is refused before it has arrived, as by a barrier that is broken already,
// makes it none.
//
// When ctx ends before, the generation is broken, and the error is the context's: unless the last party came
// just then, which makes it a success. A party whose ctx ended before it arrived breaks nothing. If it does
// not become known in time what became of the arrival, the error has ErrUnknownOutcome, and to break the
// generation goes on in the background.
//
// Other errors: [ErrBroken], [ErrForgotten], [ErrParties]; ErrWrongType for foreign data, which stays as it
// is; ErrClosed, and those of Redis that will not pass by themselves, as when it has no memory left. A party
// that has arrived and gets one of them has left the generation, which is broken. It is a member all the
// same. An outage of Redis that ends before ctx and the lease is survived.
func (b *Barrier) Await(ctx context.Context) (Arrival, error) {
	began := time.Now()
	generation, index, err := b.pass(ctx)
	b.gathering.Awaited(ctx, b.name, began, err)
	return Arrival{generation, int(index)}, err
}

// Join makes the client a member of the barrier, which it stays until [Barrier.Leave]: its death breaks the
// barrier from now on, and not only from its first [Barrier.Await] on. To join twice is to join once. With
// [WithoutMembership] it works as well.
//
// It is sent until it is answered, or ctx ends. With an error the client is no member, unless it was one
// before, or another goroutine has made it one. Errors: [ErrBroken] when the barrier is broken;
// ErrUnknownOutcome if it may have been done, which is undone in the background; ErrWrongType, ErrClosed, and
// those of Redis that will not pass by themselves. To undo it is a [Barrier.Leave]: if it had been done, that
// breaks a generation in which others have arrived.
func (b *Barrier) Join(ctx context.Context) error { return b.gathering.join(ctx, b.name) }

// Leave ends the membership of the client: the barrier does without it from now on. If parties of other
// clients have arrived by then and wait for more, their generation is broken, because a party gives up; if
// nobody waits, or if all have arrived, nothing is. Parties of this client that wait go on waiting, and its
// next [Barrier.Await] makes it a member again. It is no error when the client is no member, and nothing is
// sent then.
//
// It is sent although ctx has ended, as in a defer, and then for as long as [latchkey.WithReleaseTimeout]
// says. If that is not enough, it goes on in the background, and the error has ErrUnknownOutcome. It never
// takes longer than the lease: what Redis is not told before that is over breaks the barrier like a death,
// and the error has ErrUnknownOutcome and ErrUnavailable.
func (b *Barrier) Leave(ctx context.Context) error {
	if err := b.gathering.leave(ctx); err != nil {
		return session.Wrap(b.name, err)
	}
	return nil
}

// Reset begins a new generation, in which nobody has arrived. If somebody waits, that one is broken. Members
// stay members. It is sent until it is answered, or ctx ends; if it may have been done then, the error has
// ErrUnknownOutcome.
func (b *Barrier) Reset(ctx context.Context) error {
	return b.gathering.Once(ctx, b.gathering.Client.Closing, b.name, func(ctx context.Context, o lua.Once) error {
		return b.gathering.Client.Conn.ResetBarrier(ctx, b.gathering.Keys, o)
	})
}
