package core

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// The sentinels of package barrier, which documents them.
var (
	ErrBroken  = errors.New("barrier broken")
	ErrParties = errors.New("others wait for another number of parties")
)

// MaxParties is the greatest number of parties.
const MaxParties = math.MaxInt32

// BarrierOptions are what the options of package barrier set.
type BarrierOptions struct {
	Lease  *time.Duration
	Action func(context.Context) error
}

// Barrier is the inside of barrier.Barrier.
type Barrier struct {
	*circle
	name    string
	parties int
	lease   time.Duration
	action  func(context.Context) error
}

// NewBarrier returns the barrier of a name.
func NewBarrier(c *Client, name string, parties int, o BarrierOptions) (*Barrier, error) {
	if parties < 1 || parties > MaxParties {
		return nil, invalid("the number of parties must be from 1 to %d, not %d", MaxParties, parties)
	}
	b := &Barrier{name: name, parties: parties, action: o.Action}
	var err error
	if b.circle, err = c.circle(lua.Barrier, name); err != nil {
		return nil, err
	}
	b.lease = c.options.Lease
	if o.Lease != nil {
		b.lease = *o.Lease
	}
	if err := validLease(b.lease); err != nil {
		return nil, err
	}
	b.circle.lease.Store(int64(b.lease))
	return b, nil
}

// Name is documented by package barrier, as are the methods that follow.
func (b *Barrier) Name() string { return b.name }

// Parties is how many must come.
func (b *Barrier) Parties() int { return b.parties }

// Await waits for the others, and returns the generation and how many came before.
func (b *Barrier) Await(ctx context.Context) (lua.Arrival, error) {
	view, err := b.enter(ctx, b.name)
	if err != nil {
		return lua.Arrival{}, err
	}
	defer b.exit()
	b.listen()
	defer b.hush()
	a := &arrival{Barrier: b, number: b.client.sequence.Add(1)}
	waits, stop := wait.Until(ctx, b.client.closing)
	defer stop()
	switch err = a.await(waits, view); {
	case err == nil:
		return a.Arrival, nil
	case errors.Is(err, errInterrupted):
		if err = a.giveUp(ctx); err == nil {
			return a.Arrival, nil // the others came just then
		}
	}
	return lua.Arrival{}, named(b.name, err)
}

// arrival is one Await.
type arrival struct {
	*Barrier
	lua.Arrival
	number uint64
	stray  bool // a command of it was not answered, and may still run
}

// await arrives and waits. It returns errInterrupted when ctx ended before it is known what became of the generation. view is from
// before the arrival.
func (a *arrival) await(ctx context.Context, view *wait.View) error {
	up := a.whileRemembered()
	for {
		answered, err := a.arrive(ctx, up)
		if err == nil {
			a.watch.Told(a.Round) // also when the first lease ends
		}
		switch {
		case !answered:
			return errInterrupted
		case err != nil:
			a.close()
			return public(err)
		}
		switch a.Generation {
		case 0:
			a.close()
			return fmt.Errorf("%w, and not reset since", passed(a.Round.Fate(a.Round.Generation)))
		case lua.WrongParties:
			a.close()
			return fmt.Errorf("%w: %d, not %d", ErrParties, a.Round.Parties, a.parties)
		case lua.Full:
			if view, err = a.watch.Next(ctx, view); err != nil {
				return errInterrupted
			}
			continue
		}
		return a.wait(ctx, view)
	}
}

// arrive arrives once, however often it is called.
func (a *arrival) arrive(ctx context.Context, up func(context.Context) error) (answered bool, err error) {
	return a.insist(ctx, up, &a.stray, func(ctx context.Context) error {
		return a.tell(a.number, func(o lua.Once) (err error) {
			a.Arrival, err = a.client.conn.Arrive(ctx, a.keys, o, int64(a.parties), milliseconds(a.lease), a.action != nil)
			return err
		})
	})
}

// wait waits for the others after the arrival.
func (a *arrival) wait(ctx context.Context, view *wait.View) error {
	if fate := a.Round.Fate(a.Generation); fate != lua.Pending {
		a.close()
		return passed(fate)
	}
	a.arrived(a.Generation)
	if a.Leads {
		return a.act(ctx, view)
	}
	fate, err := a.follow(ctx, view)
	if err != nil {
		return err
	}
	a.close()
	return passed(fate)
}

// close is told that no command of the arrival will be sent again.
func (a *arrival) close() {
	if !a.stray {
		a.receipts.settle(a.number)
	}
}

// arrived counts the arrivals that Redis must know of.
func (r *circle) arrived(generation int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if generation > r.generation {
		r.generation, r.arrivals = generation, 0
	}
	if generation == r.generation {
		r.arrivals++
	}
}

// attend reads the state for those who wait, and renews their lease.
func (r *circle) attend(ctx context.Context) (lua.Round, error) {
	r.mu.Lock()
	generation, arrivals := r.generation, r.arrivals
	r.mu.Unlock()
	return r.client.conn.Attend(ctx, r.keys, r.client.id, milliseconds(time.Duration(r.lease.Load())), generation, arrivals)
}

// follow waits until it is known what became of the generation.
func (a *arrival) follow(ctx context.Context, v *wait.View) (lua.Fate, error) {
	for {
		if v.Err != nil {
			return lua.Pending, public(v.Err)
		}
		switch fate := v.Fate(a.Generation); fate {
		case lua.Pending, lua.Later:
		default:
			return fate, nil
		}
		var err error
		if v, err = a.watch.Next(ctx, v); err != nil {
			return lua.Pending, errInterrupted
		}
	}
}

// act runs the action, whose context ends when the generation is broken meanwhile, and then lets the others go on, or breaks the
// generation when it failed, or panicked.
func (a *arrival) act(ctx context.Context, view *wait.View) (err error) {
	within, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if fate, err := a.follow(within, view); err == nil {
			cancel(passed(fate))
		}
	}()
	fate := lua.Failed
	defer func() {
		cancel(nil)
		<-watched
		outcome, unsettled := a.settle(ctx, fate)
		switch {
		case unsettled != nil:
			err = errors.Join(err, unsettled)
		case fate == lua.Failed && outcome != lua.Done:
			err = fmt.Errorf("%w: the action failed: %w", ErrBroken, err)
		case err == nil:
			err = passed(outcome)
		}
	}()
	if err = a.action(within); err == nil {
		fate = lua.Done
	}
	return err
}

// giveUp ends an arrival whose context has ended: the generation is broken, unless it is over.
func (a *arrival) giveUp(ctx context.Context) error {
	fate, err := a.settle(ctx, lua.Cancelled)
	if err == nil && fate == lua.Done {
		return nil
	}
	reason := a.interrupted(ctx)
	if err == nil && fate != lua.Cancelled && fate != lua.Pending {
		err = passed(fate) // somebody else has broken it
	}
	if err != nil {
		return fmt.Errorf("%w: %w", reason, err)
	}
	return reason
}

// settle says what is to become of the generation, and returns what did. It is sent until it is answered, or Redis would have
// forgotten the arrival; it waits for that as an Unlock does.
func (a *arrival) settle(ctx context.Context, wanted lua.Fate) (fate lua.Fate, err error) {
	up := a.whileRemembered()
	err = a.client.outlast(ctx, func(ctx context.Context) (bool, error) {
		var reply lua.Arrival
		answered, err := a.insist(ctx, up, &a.stray, func(ctx context.Context) error {
			return a.tell(a.number, func(o lua.Once) (err error) {
				reply, err = a.client.conn.Settle(ctx, a.keys, o, wanted)
				return err
			})
		})
		if !answered {
			return ctx.Err() == nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, outcome(err))
		}
		if err != nil {
			return true, public(err)
		}
		a.close()
		switch {
		case reply.Generation != lua.GivenUp:
			a.Generation, a.Index = reply.Generation, reply.Index
			fate = reply.Round.Fate(reply.Generation)
		case a.Generation > 0:
			fate = lua.Lost
		default:
			fate = lua.Cancelled // it never arrived, and breaks nothing
		}
		return true, nil
	})
	if err != nil { // it may go on
		return lua.Pending, err
	}
	return fate, nil
}

// passed is what a party is told of its generation.
func passed(fate lua.Fate) error {
	why := "redis does not know of it any more"
	switch fate {
	case lua.Done:
		return nil
	case lua.Cancelled:
		why = "a party gave up"
	case lua.Failed:
		why = "the action failed"
	case lua.LeaseOver:
		why = "the lease of a party that waited is over"
	case lua.ArrivalLost:
		why = "redis has lost an arrival"
	case lua.Reset:
		why = "it was reset"
	}
	return fmt.Errorf("%w: %s", ErrBroken, why)
}

// Reset begins a new generation.
func (b *Barrier) Reset(ctx context.Context) error {
	return b.once(ctx, b.name, func(ctx context.Context, o lua.Once) error {
		return b.client.conn.ResetBarrier(ctx, b.keys, o)
	})
}

// Inspect returns the state.
func (b *Barrier) Inspect(ctx context.Context) (lua.Round, error) {
	if b.client.closing.Err() != nil {
		return lua.Round{}, named(b.name, ErrClosed)
	}
	r, err := b.client.conn.Attend(withoutDeadline(ctx), b.keys, b.client.id, 0, 0, 0)
	if err != nil {
		return r, named(b.name, outcome(err))
	}
	return r, nil
}
