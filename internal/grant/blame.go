package grant

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/identity"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// BlameLimit is how long the error of a refused attempt waits for the answer who holds the lock.
const BlameLimit = 50 * time.Millisecond

// blame adds to the error of a refused attempt who holds the lock. It asks after the refusal, so it costs nothing if
// the attempt is granted. It asks only if the caller ran out of time: a caller that cancels wants no answer.
//
//go:noinline
func (p *Primitive) blame(c *contender, err error) error {
	if p.Queue.kind.Exclusive && Blames(p.Queue.At.Client, err) {
		ctx, cancel := context.WithTimeout(p.Queue.At.Client.Stopped, BlameLimit)
		defer cancel()
		holder, _, asked := p.holder(ctx)
		late := c.tenure != nil && holder.Owner == c.tenure.waiter.Owner // c got the lock too late, and gives it back
		if asked == nil && !late {
			return fail.HeldBy(p.Name, err, holder)
		}
	}
	return err
}

// Blames reports whether the error of an attempt is to say who holds the lock: the attempt was refused, or its time
// was over, Redis answers, and the client has not asked too often.
func Blames(c *session.Client, err error) bool {
	refused := errors.Is(err, fail.ErrNotAcquired) && !errors.Is(err, ErrOther)
	return (refused || errors.Is(err, context.DeadlineExceeded)) && !errors.Is(err, fail.ErrUnavailable) &&
		c.Closing.Err() == nil && c.MayAsk()
}

// holder asks Redis who holds the lock, and how many are queued. Owner is empty if no client does.
func (p *Primitive) holder(ctx context.Context) (h identity.Holder, queued int64, err error) {
	at := &p.Queue.At
	state, err := at.Client.Conn.Inspect(session.WithoutDeadline(ctx), at.Keys, 0)
	if err != nil || state.Owner == "" {
		return h, state.Length, err
	}
	h = HolderOf(at.Client, state)
	h.Party = at.Client.Records.Who(ctx, at.Name(), []string{state.Owner})[0]
	return h, state.Length, nil
}

// HolderOf returns the holder that Redis tells, without what its client tells.
func HolderOf(c *session.Client, s lua.State) (h identity.Holder) {
	if s.Owner == "" {
		return h
	}
	var mode identity.Mode
	if s.Shares > 0 {
		mode = identity.Reads
	}
	h = identity.Holder{
		Mine: lua.ClientOf(s.Owner) == c.IDs.Client, Token: s.Token, Remaining: time.Duration(s.Ends) * time.Millisecond,
	}
	h.Owner, h.Mode = identity.ModeOf(s.Owner, mode)
	return h
}
