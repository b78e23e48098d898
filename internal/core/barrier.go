package core

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
)

// The sentinels of package barrier, which documents them.
var (
	ErrBroken    = errors.New("barrier broken")
	ErrForgotten = errors.New("redis does not know any more whether this generation went on")
	ErrParties   = errors.New("others wait for another number of parties")
)

// MaxParties is the greatest number of parties.
const MaxParties = math.MaxInt32

// BarrierOptions are what the options of package barrier set.
type BarrierOptions struct {
	Lease             *time.Duration
	Action            func(context.Context) error
	WithoutMembership bool
}

// Barrier is the inside of barrier.Barrier.
type Barrier struct {
	circle  *gathering // named, so that what it can do is no method of a barrier
	name    string
	parties int
	action  func(context.Context) error
	joins   bool // who awaits it is a member from then on
}

// NewBarrier returns the barrier of a name.
func NewBarrier(c *Client, name string, parties int, o BarrierOptions) (*Barrier, error) {
	if parties < 1 || parties > MaxParties {
		return nil, named(name, invalid("the number of parties must be from 1 to %d, not %d", MaxParties, parties))
	}
	b := &Barrier{name: name, parties: parties, action: o.Action, joins: !o.WithoutMembership}
	var err error
	if b.circle, err = gatheringOf(c, name); err != nil {
		return nil, named(name, err)
	}
	lease := c.options.Lease
	if o.Lease != nil {
		lease = *o.Lease
	}
	if err := validLease(lease); err != nil {
		return nil, named(name, err)
	}
	b.circle.setLease(lease)
	return b, nil
}

// Name is documented by package barrier, as are the methods that follow.
func (b *Barrier) Name() string { return b.name }

// Parties is how many must come.
func (b *Barrier) Parties() int { return b.parties }

// pass waits for the others, and returns the generation and how many came before.
func (b *Barrier) pass(ctx context.Context) (generation, index int64, err error) {
	view, err := b.circle.enter(ctx, b.name, math.MaxInt) // whoever were refused would keep the others waiting
	if err != nil {
		return 0, 0, err
	}
	defer b.circle.exit()
	b.circle.listen()
	defer b.circle.hush()
	a := &arrival{gathering: b.circle, barrier: b, number: b.circle.client.ids.next()}
	if b.joins {
		a.member = b.circle.membership()
	}
	waits, stop := retry.Until(ctx, b.circle.client.closing)
	defer stop()
	if err := a.await(waits, ctx, view); err != nil {
		return 0, 0, named(b.name, err)
	}
	raise(b.circle.seen, a.generation+1) // a message may have said so
	return a.generation, a.index, nil
}

// Join makes the client a member.
func (b *Barrier) Join(ctx context.Context) error { return b.circle.join(ctx, b.name) }

// Leave ends that.
func (b *Barrier) Leave(ctx context.Context) error {
	if err := b.circle.leave(ctx); err != nil {
		return named(b.name, err)
	}
	return nil
}

// Reset begins a new generation.
func (b *Barrier) Reset(ctx context.Context) error {
	return b.circle.once(ctx, b.circle.client.closing, b.name, func(ctx context.Context, o lua.Once) error {
		return b.circle.client.conn.ResetBarrier(ctx, b.circle.keys, o)
	})
}

// Inspect returns the state.
func (b *Barrier) Inspect(ctx context.Context) (lua.Round, error) {
	if b.circle.client.closing.Err() != nil {
		return lua.Round{}, named(b.name, ErrClosed)
	}
	r, err := b.circle.client.conn.Attend(withoutDeadline(ctx), b.circle.keys, lua.Attendance{Client: b.circle.client.ids.client})
	if err != nil {
		return r, b.circle.unread(ctx, b.name, err)
	}
	return r, nil
}

// Await waits for the others, and returns the generation and how many came before.
func (b *Barrier) Await(ctx context.Context) (generation, index int64, err error) {
	began := time.Now()
	generation, index, err = b.pass(ctx)
	b.circle.awaited(ctx, b.name, began, err)
	return generation, index, err
}
