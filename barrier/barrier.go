// Package barrier is a cyclic barrier across processes, as java.util.concurrent.CyclicBarrier is across threads: a number of
// parties wait for each other, and go on together, again and again.
//
//	b, err := barrier.New(c, "step", 8)
//	...
//	for {
//		work()
//		arrival, err := b.Await(ctx)                          // until all 8 have come
//		if err != nil { return err }                          // ErrBroken: one of them will not come
//	}
//
// # Guarantees
//
// Nobody goes on before all parties of the generation have arrived, and then everybody does, in all processes, by one message,
// and the next generation begins. Each [Barrier.Await] arrives once, although its reply was lost and it was sent again: Redis
// remembers it until its client says that it was answered, with its next command on the same barrier, and at most ten minutes;
// after nine without an answer it is given up.
//
// All parties of a generation go on, or none: when one of those that wait will not, the generation is broken, and all the
// others get [ErrBroken] at once, also those that come later, until [Barrier.Reset]. That is so when its context ends, when it
// is closed, when its action fails, and when its process dies or cannot reach Redis: its arrival has a lease ([WithLease]), and
// at most 100 ms after that the others know. (One of them may have gone on already when a failover loses that the last party
// came: replication is asynchronous.) A party that is killed and comes back before its lease is over arrives a second time, and
// counts as two: where processes restart so fast, give arrivals a short lease, or [Barrier.Reset] first.
//
// When a restart or a failover has lost an arrival, the generation is broken, too, within a third of the lease of its client,
// or two seconds.
//
// How much a wait costs does not depend on how many goroutines of a process wait: they share a subscription, and one
// command every third of the lease, two seconds at most, which renews the lease for all of them.
//
// # In Redis
//
// The keys of a barrier named N (after the key prefix) are N, latchkey_arrivals:{N}, and what begins with latchkey_done:{N}; a
// probe touches latchkey_probe:{N}, which never exists. The channel is latchkey_barrier:{N}. All are without the braces if N
// has some. Each key has a time to live, of two days from the last use at most. A barrier that has been forgotten is as new,
// also when it was broken. Redisson has no barrier.
package barrier

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/core"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// MaxParties is the greatest number of parties.
const MaxParties = core.MaxParties

// The errors that only barriers have, for errors.Is.
var (
	// ErrBroken says that the generation is broken: not all of its parties can go on. Its text says why.
	ErrBroken = core.ErrBroken
	// ErrForgotten is returned to a party that arrived, when Redis does not know any more whether its generation went on: Redis has
	// lost it, or the party was cut off so long that 32 later generations have broken meanwhile. The others may have gone on, or not.
	ErrForgotten = core.ErrForgotten
	// ErrParties is returned to who says another number of parties than those that wait. They are not disturbed.
	ErrParties = core.ErrParties
)

// Barrier is a barrier of one name. Any number of goroutines share it, each Await being a party of its own. There is no usable
// zero value: see [New].
type Barrier core.Barrier

// Option configures a barrier.
type Option func(*core.BarrierOptions)

// WithLease sets for how long an arrival stands without its process being heard of; it is renewed every third of it. From 10 ms
// to 24 h; default: the client's. Of two barriers of one name on one client, the lease of the one that was made last is what is
// renewed.
func WithLease(d time.Duration) Option { return func(o *core.BarrierOptions) { o.Lease = &d } }

// WithAction sets what the last party that arrives runs before anybody goes on. All processes should set the same: it is the
// action of the one that happens to come last that runs.
//
// When it returns an error, or panics, the generation is broken: the others get [ErrBroken], and the last party both that and
// the error, or the panic. When its process dies meanwhile, the generation is broken after the lease, and nobody knows how far
// it came. Its context is that of the last party's Await, and ends also when the client is closed, and when the generation is
// broken by somebody else meanwhile, with [ErrBroken] as its cause; if it returns nil all the same, it has run, and the last
// party gets ErrBroken like the others. It may take as long as it likes: the lease is renewed. Whoever arrives meanwhile waits
// for it, too; so it must not await its own barrier.
func WithAction(action func(context.Context) error) Option {
	return func(o *core.BarrierOptions) { o.Action = action }
}

// New returns the barrier of a name, for a number of parties from 1 to [MaxParties]. It does no I/O. The name is as for package
// rlock, and of its own: one name is one primitive. It returns ErrInvalid for other names and numbers, a nil client and options
// out of range, and on a client with [latchkey.WithReplicas]: it would not wait for them.
func New(c *latchkey.Client, name string, parties int, opts ...Option) (*Barrier, error) {
	var o core.BarrierOptions
	for _, option := range opts {
		if option != nil {
			option(&o)
		}
	}
	b, err := core.NewBarrier((*core.Client)(c), name, parties, o)
	return (*Barrier)(b), err
}

func (b *Barrier) core() *core.Barrier { return (*core.Barrier)(b) }

// Name returns the name that was given to New.
func (b *Barrier) Name() string { return b.core().Name() }

// Parties returns the number that was given to New.
func (b *Barrier) Parties() int { return b.core().Parties() }

// Arrival is what a party that goes on knows.
type Arrival struct {
	Generation int64 // the same for all that go on together; grows
	Index      int   // how many parties had arrived before: from 0, the first one, to parties - 1, which ran the action; Java's counts down
}

// Await arrives, and waits until all parties have.
//
// When ctx ends before, the generation is broken, and the error is the context's: unless the last party came just then, which
// makes it a success. A party whose ctx ended before it arrived breaks nothing. If it does not become known in time what
// became of the arrival, the error has ErrUnknownOutcome, and to break the generation goes on in the background.
//
// Other errors: [ErrBroken], [ErrParties]; ErrWrongType for foreign data, which stays as it is; ErrClosed, and those of Redis
// that will not pass by themselves, as when it has no memory left. A party that has arrived and gets one of them has left, and
// the generation is broken. An outage of Redis that ends before ctx and the lease is survived.
func (b *Barrier) Await(ctx context.Context) (Arrival, error) {
	generation, index, err := b.core().Await(ctx)
	return Arrival{generation, int(index)}, err
}

// Reset begins a new generation, in which nobody has arrived. If somebody waits, that is broken. It is sent until it is
// answered, or ctx ends; if it may have been done then, the error has ErrUnknownOutcome.
func (b *Barrier) Reset(ctx context.Context) error { return b.core().Reset(ctx) }

// State is what Inspect returns: a snapshot that may be history when it arrives.
type State struct {
	Generation int64 // of those who wait, or come next; 0 for a barrier that nobody has used
	Parties    int   // for which those wait; 0 while nobody does
	Waiting    int   // how many have arrived
	Acting     bool  // all have, and the action runs
	Broken     bool
}

// Inspect returns the state. It gives up when Redis does not answer, as do Broken and Waiting.
func (b *Barrier) Inspect(ctx context.Context) (State, error) {
	r, err := b.core().Inspect(ctx)
	return State{
		Generation: r.Generation, Parties: int(r.Parties), Waiting: int(r.Number),
		Acting: r.Phase == lua.Acting, Broken: r.Phase == lua.Broken,
	}, err
}

// Broken reports whether the barrier is broken, until Reset.
func (b *Barrier) Broken(ctx context.Context) (bool, error) {
	s, err := b.Inspect(ctx)
	return s.Broken, err
}

// Waiting returns how many parties have arrived and wait.
func (b *Barrier) Waiting(ctx context.Context) (int, error) {
	s, err := b.Inspect(ctx)
	return s.Waiting, err
}
