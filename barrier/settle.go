package barrier

import (
	"context"
	"fmt"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// To settle an arrival is to say what is to become of its generation. Redis does that unless something
// else has become of it already, and answers what has. So all parties learn the same.

// giveUp ends an Await early, for a reason. It breaks the generation, unless that is over. It returns no
// error when the last of the others came just then.
func (a *arrival) giveUp(ctx context.Context, reason error) error {
	fate, err := a.settle(ctx, lua.Cancelled)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", reason, err)
	case fate == lua.Done:
		return nil
	case fate == lua.Cancelled:
		return reason
	default: // another party has broken it
		return fmt.Errorf("%w: %w", reason, fateError(fate))
	}
}

// settle says what is to become of the generation, and returns what did. Like an Unlock it goes on in the
// background, until it is answered or Redis may have forgotten whether the party has arrived.
func (a *arrival) settle(ctx context.Context, wanted lua.Fate) (lua.Fate, error) {
	s := &settlement{arrival: a, wanted: wanted, up: a.up}
	generation := a.generation // the background may change it
	if generation != 0 {
		s.up = a.UpWhileRecorded()
	}
	if err := a.FinishInBackground(ctx, s.send); err != nil {
		a.breakByReading(generation)
		return lua.Pending, lua.Quiet(err)
	}
	return s.fate, nil
}

// settlement is one settle of an arrival.
type settlement struct {
	arrival    *arrival
	wanted     lua.Fate
	up         func(context.Context) error
	background bool     // it counts among the group's settling
	fate       lua.Fate // once it is answered
}

// send sends the command until Redis answers or ctx ends. It reports whether it is over; otherwise it is
// to be called again.
func (s *settlement) send(ctx context.Context) (over bool, err error) {
	defer func() { s.count(over) }()
	a := s.arrival
	var reply lua.Arrival
	answered, err := a.RetryUntilAnswered(ctx, s.up, &a.stray, func(ctx context.Context) error {
		return a.SendCopy(a.number, func(o lua.Once) (err error) {
			reply, err = a.Client.Conn.Settle(ctx, a.Keys, o, s.wanted, a.generation, a.index)
			return err
		})
	})
	if err == nil {
		s.answered(reply)
		return true, nil
	}
	err = fail.WithSentinel(err)
	if !answered {
		err = fmt.Errorf("%w: %w", fail.ErrUnknownOutcome, err)
	}
	if !answered && ctx.Err() != nil {
		return false, err
	}
	a.notBegunMembership(a.stray)
	return true, err
}

// count counts the arrival among those that are being settled in the background, from the end of the first
// send that was not answered. That is before its Await returns, after which its party may come again.
func (s *settlement) count(over bool) {
	switch {
	case !over && !s.background:
		s.background = true
		s.arrival.settling.add(1)
	case over && s.background:
		s.arrival.settling.add(-1)
	}
}

func (s *settlement) answered(reply lua.Arrival) {
	a := s.arrival
	if reply.Generation == lua.GivenUp { // it had not arrived, and breaks nothing
		a.finish()
		s.fate = lua.Cancelled
		return
	}
	a.begunMembership()
	a.finish()
	a.generation, a.index = reply.Generation, reply.Index
	s.fate = reply.Round.Fate(reply.Generation)
}
