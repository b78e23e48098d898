package wait

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// Member is one of several waiters, of different queues, that ask with one command. Each only tries.
type Member struct {
	Waiters *Waiters
	Waiter  *Waiter
}

// Together makes one attempt for several waiters with one command. send sends it: it does nothing after
// until, a moment of the server's clock, and has a reply for each member. Together repeats it until it is
// answered. It returns for each member what [Waiters.Wait] returns: nil for one that owns its lock.
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
		for _, i := range open { // its answer came too late to be believed
			errs[i] = members[i].Waiters.Wait(ctx, members[i].Waiter)
		}
		return errs
	}
}

// attemptTogether sends the command once. It returns what came of each, and which must ask again.
func attemptTogether(
	ctx context.Context, members []Member, send func(ctx context.Context, until int64) ([]lua.Acquired, error),
) (errs []error, open []int) {
	questions := make([]question, len(members))
	for i, m := range members {
		_, _, _ = m.Waiters.prepare(m.Waiter) // no goroutine could inherit it, so it waits
		questions[i] = m.Waiters.question(ctx, m.Waiter, lua.Try)
		questions[i].until = questions[0].until // which is sent for all
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
