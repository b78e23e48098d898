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
	ErrBroken    = errors.New("barrier broken")
	ErrForgotten = errors.New("redis does not know any more whether this generation went on")
	ErrParties   = errors.New("others wait for another number of parties")
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
	circle  *circle // named, so that what it can do is no method of a barrier
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
func (b *Barrier) Await(ctx context.Context) (generation, index int64, err error) {
	view, err := b.circle.enter(ctx, b.name, math.MaxInt) // whoever were refused would keep the others waiting
	if err != nil {
		return 0, 0, err
	}
	defer b.circle.exit()
	b.circle.listen()
	defer b.circle.hush()
	a := &arrival{circle: b.circle, barrier: b, number: b.circle.client.sequence.Add(1)}
	waits, stop := wait.Until(ctx, b.circle.client.closing)
	defer stop()
	if err := a.await(waits, ctx, view); err != nil {
		return 0, 0, named(b.name, err)
	}
	return a.generation, a.index, nil
}

// arrival is one Await.
type arrival struct {
	*circle
	barrier    *Barrier
	number     uint64
	generation int64                       // 0: it has not arrived, as far as is known
	index      int64                       // how many had before
	stray      bool                        // a command of it was not answered, and may still run
	up         func(context.Context) error // waits until Redis is back, while that knows what an arrival did
}

// await arrives and waits until waits ends, which it does with ctx and with the client. view is from before the arrival.
func (a *arrival) await(waits, ctx context.Context, view *wait.View) error {
	for {
		reply, answered, err := a.arrive(waits)
		switch {
		case !answered:
			return a.giveUp(ctx, a.interrupted(ctx))
		case err != nil && a.stray: // a copy may have arrived
			return a.giveUp(ctx, public(err))
		case err != nil:
			a.close()
			return public(err)
		}
		a.watch.Told(reply.Round) // also when the first lease ends
		switch reply.Generation {
		case 0:
			a.close()
			return fmt.Errorf("%w, and not reset since", passed(reply.Round.Fate(reply.Round.Generation)))
		case lua.WrongParties:
			a.close()
			return fmt.Errorf("%w: %d, not %d", ErrParties, reply.Round.Parties, a.barrier.parties)
		case lua.Full: // all parties of this generation are there: it is one of the next
			if view, err = a.watch.Next(waits, view); err != nil {
				return a.giveUp(ctx, a.interrupted(ctx))
			}
			continue
		}
		a.generation, a.index = reply.Generation, reply.Index
		return a.wait(waits, ctx, view, reply)
	}
}

// arrive sends the arrival, which is done once however often it is called.
func (a *arrival) arrive(ctx context.Context) (reply lua.Arrival, answered bool, err error) {
	a.up = a.whileRemembered()
	answered, err = a.insist(ctx, a.up, &a.stray, func(ctx context.Context) error {
		return a.tell(a.number, func(o lua.Once) (err error) {
			reply, err = a.client.conn.Arrive(ctx, a.keys, o, int64(a.barrier.parties), milliseconds(a.barrier.lease), a.barrier.action != nil)
			return err
		})
	})
	return reply, answered, err
}

// wait waits for the others after the arrival.
func (a *arrival) wait(waits, ctx context.Context, view *wait.View, reply lua.Arrival) error {
	if fate := reply.Round.Fate(a.generation); fate != lua.Pending {
		a.close()
		return passed(fate)
	}
	if view.Generation > a.generation {
		// A failover took Redis back to where it was: who came to this generation before may have gone on from it.
		fate, err := a.settle(ctx, lua.ArrivalLost)
		return errors.Join(err, passed(fate))
	}
	a.arrived(a.generation)
	if reply.Leads {
		return a.act(waits, ctx, view)
	}
	fate, err := a.follow(waits, view)
	switch {
	case errors.Is(err, errInterrupted):
		return a.giveUp(ctx, a.interrupted(ctx))
	case err != nil:
		return a.giveUp(ctx, err)
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

// follow waits until it is known what became of the generation. What was wrong when v was read, before the arrival, may not be
// any more.
func (a *arrival) follow(ctx context.Context, v *wait.View) (lua.Fate, error) {
	for {
		switch fate := v.Fate(a.generation); fate {
		case lua.Pending, lua.Later:
		default:
			return fate, nil
		}
		var err error
		if v, err = a.watch.Next(ctx, v); err != nil {
			return lua.Pending, errInterrupted
		}
		if v.Err != nil {
			return lua.Pending, public(v.Err)
		}
	}
}

// act runs the action, whose context ends when the generation is broken meanwhile, and then lets the others go on, or breaks
// the generation when it failed, or panicked.
func (a *arrival) act(waits, ctx context.Context, view *wait.View) (err error) {
	within, cancel := context.WithCancelCause(waits)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if fate, err := a.follow(within, view); err == nil {
			cancel(passed(fate))
		}
	}()
	wanted := lua.Failed
	defer func() {
		cancel(nil)
		<-watched
		fate, unsettled := a.settle(ctx, wanted)
		switch {
		case unsettled != nil && ctx.Err() != nil:
			err = errors.Join(err, ended(ctx), unsettled)
		case unsettled != nil:
			err = errors.Join(err, unsettled)
		case wanted == lua.Failed && fate != lua.Done:
			err = fmt.Errorf("%w: the action failed: %w", ErrBroken, err)
		case err == nil:
			err = passed(fate)
		}
	}()
	if err = a.barrier.action(within); err == nil {
		wanted = lua.Done
	}
	return err
}

// giveUp ends a wait early, for a reason: the generation is broken, unless it is over. It returns no error if the others came
// just then.
func (a *arrival) giveUp(ctx context.Context, reason error) error {
	fate, err := a.settle(ctx, lua.Cancelled)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", reason, err)
	case fate == lua.Done:
		return nil
	case fate == lua.Cancelled:
		return reason
	default: // somebody else has broken it
		return fmt.Errorf("%w: %w", reason, passed(fate))
	}
}

// settle says what is to become of the generation, and returns what did. It is sent until it is answered, or Redis may have
// forgotten whether the party has arrived; it waits for that as an Unlock does.
func (a *arrival) settle(ctx context.Context, wanted lua.Fate) (lua.Fate, error) {
	up, generation := a.up, a.generation
	if generation != 0 {
		up = a.whileRemembered()
	}
	fate := lua.Pending
	err := a.client.outlast(ctx, func(ctx context.Context) (bool, error) {
		var reply lua.Arrival
		answered, err := a.insist(ctx, up, &a.stray, func(ctx context.Context) error {
			return a.tell(a.number, func(o lua.Once) (err error) {
				reply, err = a.client.conn.Settle(ctx, a.keys, o, wanted, a.generation, a.index)
				return err
			})
		})
		switch {
		case !answered:
			return ctx.Err() == nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, outcome(err))
		case err != nil:
			return true, public(err)
		}
		a.close()
		if reply.Generation == lua.GivenUp { // it breaks nothing
			fate = lua.Cancelled
			return true, nil
		}
		a.generation, a.index = reply.Generation, reply.Index
		fate = reply.Round.Fate(reply.Generation)
		return true, nil
	})
	if err != nil { // it may go on, and change the fate
		a.disown(generation)
		return lua.Pending, err
	}
	return fate, nil
}

// disown has the next reading find an arrival missing, which breaks the generation, when to break it was not possible or has
// not been answered: otherwise those of the client that wait would keep the lease of one that has left.
func (r *circle) disown(generation int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if generation > 0 && generation == r.generation {
		r.arrivals = math.MaxInt32
	}
}

// passed is what a party is told of its generation. One that nothing is known of is not called broken: others may have gone on.
func passed(fate lua.Fate) error {
	why := ""
	switch fate {
	case lua.Done:
		return nil
	case lua.Cancelled:
		why = "a party gave up"
	case lua.Failed:
		why = "the action failed"
	case lua.LeaseOver:
		why = "the lease of a party is over"
	case lua.ArrivalLost:
		why = "an arrival was lost"
	case lua.Reset:
		why = "it was reset"
	default: // Lost, or Later: what is there is from before it
		return ErrForgotten
	}
	return fmt.Errorf("%w: %s", ErrBroken, why)
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
	r, err := b.circle.client.conn.Attend(withoutDeadline(ctx), b.circle.keys, b.circle.client.id, 0, 0, 0)
	if err != nil {
		return r, b.circle.unread(ctx, b.name, err)
	}
	return r, nil
}
