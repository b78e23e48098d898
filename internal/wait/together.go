package wait

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Member is one of several waiters, of different queues, that ask with one command. Each waiter only tries.
type Member struct {
	Waiters *Waiters
	Waiter  *Waiter
}

// Together makes one attempt for several waiters with one command. send sends this command, which does nothing after
// until, a moment of the server's clock. The answer has a reply for each member. Together repeats the command until
// Redis answers. For each member Together returns what [Waiters.Wait] returns: nil if the member owns its lock.
func Together(
	ctx context.Context, members []Member, send func(ctx context.Context, until int64) ([]lua.Acquired, error),
) []error {
	for {
		if ctx.Err() != nil {
			errs := make([]error, len(members))
			for i, m := range members {
				m.Waiters.giveUp(ctx, m.Waiter)
				errs[i] = context.Cause(ctx)
			}
			return errs
		}
		errs, open := attemptTogether(ctx, members, send)
		if len(open) == len(members) {
			continue // Redis was away, and answers again
		}
		for _, i := range open { // the answer for this member came too late to be believed
			errs[i] = members[i].Waiters.Wait(ctx, members[i].Waiter)
		}
		return errs
	}
}

// attemptTogether sends the command once. It returns the outcome of each member, and the indices of the members that
// must ask again.
func attemptTogether(
	ctx context.Context, members []Member, send func(ctx context.Context, until int64) ([]lua.Acquired, error),
) (errs []error, open []int) {
	questions := make([]question, len(members))
	for i, m := range members {
		_, _, _ = m.Waiters.prepare(m.Waiter) // no goroutine could inherit the waiter, so the waiter still waits
		questions[i] = m.Waiters.question(ctx, m.Waiter, lua.Try)
		questions[i].until = questions[0].until // the one command has one deadline
	}
	replies, err := send(ctx, questions[0].until)
	errs = make([]error, len(members))
	for i, m := range members {
		var reply lua.Acquired
		if err == nil {
			reply = replies[i]
		}
		if m.Waiters.answered(ctx, m.Waiter, questions[i], reply, err) {
			m.Waiters.ask(ctx, m.Waiter, lua.Try)
		}
	}
	for i, m := range members {
		done, err := m.Waiters.awake(ctx, m.Waiter)
		if errs[i] = err; !done {
			open = append(open, i)
		}
	}
	return errs, open
}
