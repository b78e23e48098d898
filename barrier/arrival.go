package barrier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
)

// arrival is one Await.
type arrival struct {
	*gathering
	barrier    *Barrier
	number     uint64
	member     uint64                      // of the client's membership, which it begins; 0: none, or it is known whether it has
	generation int64                       // 0: it has not arrived, as far as is known
	index      int64                       // how many had before
	stray      bool                        // a command of it was not answered, and may still run
	up         func(context.Context) error // waits until Redis is back, while that knows what an arrival did
}

// pass waits for the others, and returns the generation and how many came before.
func (b *Barrier) pass(ctx context.Context) (generation, index int64, err error) {
	view, err := b.gathering.Enter(ctx, b.name, math.MaxInt) // whoever were refused would keep the others waiting
	if err != nil {
		return 0, 0, err
	}
	defer b.gathering.Exit()
	b.gathering.Listen()
	defer b.gathering.Unlisten()
	a := &arrival{gathering: b.gathering, barrier: b, number: b.gathering.Client.IDs.Next()}
	if b.joins {
		a.member = b.gathering.membership()
	}
	waits, stop := retry.Until(ctx, b.gathering.Client.Closing)
	defer stop()
	if err := a.await(waits, ctx, view); err != nil {
		return 0, 0, session.Wrap(b.name, err)
	}
	session.Raise(b.gathering.Floor, a.generation+1) // a message may have said so
	return a.generation, a.index, nil
}

// await arrives and waits until waits ends, which it does with ctx and with the client. view is from before
// the arrival.
func (a *arrival) await(waits, ctx context.Context, view *broadcast.View) error {
	// Who has left and comes again must not complete a generation with what it has left there. Whoever settles
	// later than this is another party: its Await has not returned yet.
	if a.unsettled.wait(waits) != nil {
		a.close()
		return a.Interrupted(ctx)
	}
	for {
		seen := a.Floor.Load()
		reply, answered, err := a.arrive(waits)
		switch {
		case !answered:
			return a.giveUp(ctx, a.Interrupted(ctx))
		case err != nil && a.stray: // a copy may have arrived
			return a.giveUp(ctx, session.WithSentinel(lua.Quiet(err)))
		case err != nil:
			a.close()
			return session.WithSentinel(lua.Quiet(err))
		}
		a.told(reply.Round) // also when the first lease ends
		switch reply.Generation {
		case 0:
			a.close()
			return notReset(reply.Round)
		case lua.WrongParties:
			a.close()
			return fmt.Errorf("%w: %d, not %d", ErrParties, reply.Round.Parties, a.barrier.parties)
		case lua.Full: // all parties of this generation are there: it is one of the next
			if view, err = a.Watch.Next(waits, view); err != nil {
				return a.giveUp(ctx, a.Interrupted(ctx))
			}
			continue
		}
		a.generation, a.index = reply.Generation, reply.Index
		return a.wait(waits, ctx, view, reply, seen)
	}
}

// arrive sends the arrival, which is done once however often it is called.
func (a *arrival) arrive(ctx context.Context) (reply lua.Arrival, answered bool, err error) {
	a.up = a.UpWhileRecorded()
	lease := a.lease.Load()
	defer func() { a.promised(lease) }()
	answered, err = a.RetryUntilAnswered(ctx, a.up, &a.stray, func(ctx context.Context) error {
		return a.SendOnce(a.number, func(o lua.Once) (err error) {
			reply, err = a.Client.Conn.Arrive(ctx, a.Keys, o, int64(a.barrier.parties), session.Milliseconds(time.Duration(lease)),
				a.barrier.action != nil, a.memberID(a.member))
			return err
		})
	})
	if err == nil && reply.Generation > 0 {
		a.begun()
	}
	return reply, answered, err
}

// begun is told that it has arrived, and with it begun the membership.
func (a *arrival) begun() {
	a.joined(a.member)
	a.member = 0
}

// notBegun is told that it has not, or, if it is stray, that this will not become known.
func (a *arrival) notBegun(stray bool) {
	a.unjoined(a.member, stray)
	a.member = 0
}

// wait waits for the others after the arrival. Generations up to seen had begun before it.
func (a *arrival) wait(waits, ctx context.Context, view *broadcast.View, reply lua.Arrival, seen int64) error {
	if fate := reply.Round.Fate(a.generation); fate != lua.Pending {
		a.close()
		return passed(fate)
	}
	if seen > a.generation {
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
	case errors.Is(err, session.ErrInterrupted):
		return a.giveUp(ctx, a.Interrupted(ctx))
	case err != nil:
		return a.giveUp(ctx, err)
	}
	a.close()
	return passed(fate)
}

// close is told that no command of the arrival will be sent again. Without a membership by now it has begun
// none: Redis remembers that it has not arrived, also for late copies.
func (a *arrival) close() {
	a.notBegun(false)
	if !a.stray {
		a.Receipts.Add(a.number)
	}
}

// follow waits until it is known what became of the generation. What was wrong when v was read, before the
// arrival, may not be any more.
func (a *arrival) follow(ctx context.Context, v *broadcast.View) (lua.Fate, error) {
	for {
		switch fate := v.Fate(a.generation); fate {
		case lua.Pending, lua.Later:
		default:
			return fate, nil
		}
		var err error
		if v, err = a.Watch.Next(ctx, v); err != nil {
			return lua.Pending, session.ErrInterrupted
		}
		if v.Err != nil {
			return lua.Pending, session.WithSentinel(lua.Quiet(v.Err))
		}
	}
}

// act runs the action, whose context ends when the generation is broken meanwhile, and then lets the others
// go on, or breaks the generation when it failed, or panicked.
func (a *arrival) act(waits, ctx context.Context, view *broadcast.View) (err error) {
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
			err = errors.Join(err, session.ContextError(ctx), unsettled)
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

// giveUp ends a wait early, for a reason: the generation is broken, unless it is over. It returns no error if
// the others came just then.
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

// settle says what is to become of the generation, and returns what did. It is sent until it is answered, or
// Redis may have forgotten whether the party has arrived; it waits for that as an Unlock does.
func (a *arrival) settle(ctx context.Context, wanted lua.Fate) (lua.Fate, error) {
	up, generation := a.up, a.generation
	if generation != 0 {
		up = a.UpWhileRecorded()
	}
	fate, behind := lua.Pending, false
	err := a.FinishInBackground(ctx, func(ctx context.Context) (over bool, err error) {
		defer func() { // before the Await returns, after which its party may come again
			switch {
			case !over && !behind:
				behind = true
				a.unsettled.add()
			case over && behind:
				a.unsettled.done()
			}
		}()
		var reply lua.Arrival
		answered, err := a.RetryUntilAnswered(ctx, up, &a.stray, func(ctx context.Context) error {
			return a.SendOnce(a.number, func(o lua.Once) (err error) {
				reply, err = a.Client.Conn.Settle(ctx, a.Keys, o, wanted, a.generation, a.index)
				return err
			})
		})
		switch {
		case !answered && ctx.Err() != nil: // it goes on
			return false, fmt.Errorf("%w: %w", session.ErrUnknownOutcome, session.WithSentinel(err))
		case !answered:
			a.notBegun(a.stray)
			return true, fmt.Errorf("%w: %w", session.ErrUnknownOutcome, session.WithSentinel(err))
		case err != nil:
			a.notBegun(a.stray)
			return true, session.WithSentinel(err)
		}
		if reply.Generation != lua.GivenUp {
			a.begun()
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
		return lua.Pending, lua.Quiet(err)
	}
	return fate, nil
}

// notReset is what whoever comes to a barrier that is broken is told.
func notReset(r lua.Round) error {
	return fmt.Errorf("%w, and not reset since", passed(r.Fate(r.Generation)))
}

// passed is what a party is told of its generation. One that nothing is known of is not called broken: others
// may have gone on.
func passed(fate lua.Fate) error {
	var why string
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
