package grant

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/session"
)

// slowWait has the logger told of a wait that lasts: nil for an attempt that does not wait, and where nobody
// wants to know.
func (p *Primitive) slowWait(a *Attempt) *session.Slow {
	c := p.Queue.At.Client
	if c.Options.SlowWait == 0 || a.Try {
		return nil
	}
	return c.SlowWait(p.Name, p.whoHolds)
}

// whoHolds is what a logger is told of the one who has the lock, and of how many are queued. Of permits,
// which many have, it is nothing; nor while Redis does not answer.
func (p *Primitive) whoHolds(ctx context.Context) []any {
	q := p.Queue
	if !q.kind.Exclusive {
		return nil
	}
	state, err := q.At.Client.Conn.Inspect(session.WithoutDeadline(ctx), q.At.Keys, 0)
	if err != nil {
		return []any{"error", err}
	}
	queued := []any{"queued", state.Length}
	if state.Owner == "" {
		return queued
	}
	return append(queued, session.Holder(q.At.Client.Records.Who(ctx, q.At.Name(), []string{state.Owner})[0])...)
}

// slowHold has the logger told of a hold that lasts. The mutex is not held.
func (u *turn) slowHold() {
	q := u.tenure.queue
	if q.At.Client.Options.SlowHold == 0 {
		return
	}
	slow := q.At.Client.SlowHold(u.tenure.name, func(context.Context) []any { return []any{"token", u.token} })
	q.mu.Lock()
	defer q.mu.Unlock()
	if u.extra().slow = slow; u.last == nil || u.tenure.loss != nil { // it is over already
		slow.End()
	}
}
