package barrier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/broadcast"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/retry"
	"github.com/latchkey-go/latchkey/internal/session"
)

// arrival is a party's, from the beginning of its Await until no command of it is sent any more. It may be
// settled in the background after the Await has returned.
type arrival struct {
	*group
	barrier    *Barrier
	number     uint64                      // of its commands
	membership uint64                      // that it may begin; 0: none, or it is known whether it has
	generation int64                       // in which it has arrived; 0: in none, as far as is known
	index      int64                       // how many had arrived before it
	known      int64                       // the highest generation that the client knew of before it arrived
	stray      bool                        // a command of it was not answered, and may still run
	up         func(context.Context) error // waits until Redis is back, while that has a record of the arrival
}

// await waits for the other parties.
func (b *Barrier) await(ctx context.Context) (Arrival, error) {
	view, err := b.group.BeginWait(ctx, b.name, math.MaxInt) // to refuse a party would keep the others waiting
	if err != nil {
		return Arrival{}, err
	}
	defer b.group.EndWait()
	b.group.Subscribe()
	defer b.group.Unsubscribe()
	a := &arrival{group: b.group, barrier: b, number: b.group.Client.IDs.Next()}
	if b.joins {
		a.membership = b.group.startMembership()
	}
	waiting, stop := retry.Until(ctx, b.group.Client.Closing)
	defer stop()
	if err := a.await(ctx, waiting, view); err != nil {
		return Arrival{}, fail.Wrap(b.name, err)
	}
	session.Raise(b.group.Floor, a.generation+1) // only a message may have said that the next one has begun
	return Arrival{a.generation, int(a.index)}, nil
}

// await arrives and waits until waiting ends, which it does with ctx and with the client. view is from before
// the arrival. Its stack is most of what a waiting party costs.
func (a *arrival) await(ctx, waiting context.Context, view *broadcast.View) error {
	// A party that left and comes again must not complete a generation together with the arrival that it
	// left there. An arrival that begins to be settled after this is another party's: its Await has not
	// returned yet.
	if a.settling.wait(waiting) != nil {
		a.finish()
		return a.Interrupted(ctx)
	}
	for {
		next, err := a.arrive(ctx, waiting)
		switch next {
		case waits:
			return a.wait(ctx, waiting, view)
		case acts:
			return a.act(ctx, waiting, view)
		case comesAgain:
			if view, err = a.Watch.Next(waiting, view); err != nil {
				return a.giveUp(ctx, a.Interrupted(ctx))
			}
		default:
			return err
		}
	}
}

// step is what a party does when its command was answered.
type step uint8

const (
	returns    step = iota // it is over
	comesAgain             // this generation has all its parties: the arrival is for the next one
	waits                  // it has arrived
	acts                   // it has arrived, as the last
)

// arrive sends the command, and says what follows. When the party's Await is over it returns what that
// returns.
//
//go:noinline
func (a *arrival) arrive(ctx, waiting context.Context) (step, error) {
	reply, answered, err := a.send(waiting)
	switch {
	case !answered:
		return returns, a.giveUp(ctx, a.Interrupted(ctx))
	case err != nil && a.stray: // a copy may have arrived
		return returns, a.giveUp(ctx, fail.WithSentinel(lua.Quiet(err)))
	case err != nil:
		a.finish()
		return returns, fail.WithSentinel(lua.Quiet(err))
	}
	a.update(reply.Round) // also for the time at which the first lease ends
	switch reply.Generation {
	case 0:
		a.finish()
		return returns, brokenBefore(reply.Round)
	case lua.WrongParties:
		a.finish()
		return returns, fmt.Errorf("%w: %d, not %d", ErrParties, reply.Round.Parties, a.barrier.parties)
	case lua.Full:
		return comesAgain, nil
	}
	a.generation, a.index = reply.Generation, reply.Index
	if fate := reply.Round.Fate(a.generation); fate != lua.Pending {
		a.finish()
		return returns, fateError(fate)
	}
	if a.known > a.generation {
		// A failover took Redis back to where it was. Parties of this generation may have gone on from it
		// before.
		fate, err := a.settle(ctx, lua.ArrivalLost)
		return returns, errors.Join(err, fateError(fate))
	}
	a.hasArrived(a.generation)
	if reply.Leads {
		return acts, nil
	}
	return waits, nil
}

// send sends the command until Redis answers. However often it is called, the party arrives once.
func (a *arrival) send(ctx context.Context) (reply lua.Arrival, answered bool, err error) {
	a.known = a.Floor.Load()
	a.up = a.UpWhileRecorded()
	lease := a.lease.Load()
	defer func() { a.leaseSent(lease) }()
	first := a.barrier.parties > 1
	answered, err = a.RetryUntilAnswered(ctx, a.up, &a.stray, func(ctx context.Context) error {
		if first {
			first = false
			var sent bool
			if reply, sent, err = a.arriveTogether(ctx, lease); sent {
				return err
			}
		}
		return a.SendCopy(a.number, func(o lua.Once) (err error) {
			reply, err = a.Client.Conn.Arrive(ctx, a.Keys, o, int64(a.barrier.parties), session.Milliseconds(time.Duration(lease)),
				a.barrier.action != nil, a.membershipID(a.membership))
			return err
		})
	})
	if err == nil && reply.Generation > 0 {
		a.begunMembership()
	}
	return reply, answered, err
}

// wait waits for the other parties after the arrival.
func (a *arrival) wait(ctx, waiting context.Context, view *broadcast.View) error {
	fate, err := a.follow(waiting, view)
	switch {
	case errors.Is(err, fail.ErrInterrupted):
		return a.giveUp(ctx, a.Interrupted(ctx))
	case err != nil:
		return a.giveUp(ctx, err)
	}
	a.finish()
	if fate == lua.Cancelled && a.Client.Closing.Err() != nil { // its own Shutdown ends the membership meanwhile
		return a.Interrupted(ctx)
	}
	return fateError(fate)
}

// follow waits until it is known what became of the generation. It passes over an error of view itself:
// that was read before the arrival, and may be over.
func (a *arrival) follow(ctx context.Context, view *broadcast.View) (lua.Fate, error) {
	for {
		switch fate := view.Fate(a.generation); fate {
		case lua.Pending, lua.Later:
		default:
			return fate, nil
		}
		var err error
		if view, err = a.Watch.Next(ctx, view); err != nil {
			return lua.Pending, fail.ErrInterrupted
		}
		if view.Err != nil {
			return lua.Pending, fail.WithSentinel(lua.Quiet(view.Err))
		}
	}
}

// finish records that no command of the arrival will be sent again. If it has not begun the membership by
// now it never will: Redis has a record that it has not arrived, also for late copies.
func (a *arrival) finish() {
	a.notBegunMembership(false)
	if !a.stray {
		a.Acks.Add(a.number)
	}
}

// begunMembership records that the arrival has begun the membership, as it has arrived.
func (a *arrival) begunMembership() {
	a.membershipBegun(a.membership)
	a.membership = 0
}

// notBegunMembership records that the arrival has not begun the membership, or, if it is stray, that nobody
// will know. It does nothing when it has.
func (a *arrival) notBegunMembership(stray bool) {
	a.membershipNotBegun(a.membership, stray)
	a.membership = 0
}
