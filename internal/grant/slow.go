package grant

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/session"
)

// slowWait makes the logger report a wait that lasts too long. It returns nil if the attempt does not wait, or if the
// client has no limit for waits.
func (p *Primitive) slowWait(a *Attempt) *session.Slow {
	c := p.Queue.At.Client
	if c.Options.SlowWait == 0 || a.Try {
		return nil
	}
	return c.SlowWait(p.Name, p.whoHolds)
}

// whoHolds returns what to log about the holder of the lock, and how many waiters are queued. For permits, which many
// owners have, it returns nothing. If Redis does not answer, it returns the error alone.
func (p *Primitive) whoHolds(ctx context.Context) []any {
	if !p.Queue.kind.Exclusive {
		return nil
	}
	holder, length, err := p.holder(ctx)
	if err != nil {
		return []any{"error", err}
	}
	queued := []any{"queued", length}
	if holder.Owner == "" {
		return queued
	}
	return append(queued, session.Holder(holder.Party)...)
}

// slowHold makes the logger report a hold that lasts too long. The caller does not hold the mutex.
func (u *turn) slowHold() {
	q := u.tenure.queue
	if q.At.Client.Options.SlowHold == 0 {
		return
	}
	slow := q.At.Client.SlowHold(u.tenure.name, func(context.Context) []any { return []any{"token", u.token} })
	q.mu.Lock()
	defer q.mu.Unlock()
	if u.extra().slow = slow; u.last == nil || u.tenure.loss != nil { // the turn is over already
		slow.End()
	}
}
