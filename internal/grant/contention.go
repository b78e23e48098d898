package grant

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// Contention: a call that waits for others calls the Waiting hook, once. The event at the end of the call says
// whether the call has waited. A call waits once it stands in the line, or once an answer of Redis says that others
// have what the call wants.

// contention says whether the Waiting hook was called for the call that competes by a tenure. The mutex of the queue
// guards it.
type contention uint8

const (
	unannounced contention = iota
	announced              // the hook was called
	finished               // the call is over, and the hook was not called
)

// Waiting calls the observer's Waiting hook.
func (p *Primitive) Waiting(ctx context.Context, permits int) {
	if hook := p.Queue.At.Client.Options.Observer.Waiting; hook != nil {
		e := p.Queue.At.NewEvent(ctx, p.Name)
		e.Permits = max(permits, 0)
		session.HookOrCrash(func() { hook(e) })
	}
}

// inLine returns the function that c calls when c is about to wait in the line; nil if no hook wants to know.
func (p *Primitive) inLine(c *contender) func() {
	if !p.Queue.At.Client.Options.Observer.WantsWaits() {
		return nil
	}
	return func() {
		if !c.contended {
			c.contended = true
			p.Waiting(c.Parent, c.Permits)
		}
	}
}

// contends calls the Waiting hook, once, if reply says that others have what w wants.
func (q *Queue) contends(w *wait.Waiter, reply lua.Acquired) {
	o := &q.At.Client.Options.Observer
	if w.Try || reply.Token > 0 || reply.Refused != nil || reply.Gone || reply.Late || !o.WantsWaits() && !w.Proposed {
		return
	}
	t := q.tenure(w.Number)
	if t == nil {
		return
	}
	if t.partOf != nil {
		t.partOf.queued()
		return
	}
	q.mu.Lock()
	first := t.contention == unannounced && o.WantsWaits()
	if first {
		t.contention = announced
	}
	e := q.At.NewEvent(t.caller, t.name)
	e.Permits = max(t.permits, 0)
	q.mu.Unlock()
	if first && o.Waiting != nil {
		session.HookOrCrash(func() { o.Waiting(e) })
	}
}

// finishContention stops further calls of the Waiting hook, and reports whether the call has waited for others.
func (c *contender) finishContention() bool {
	if t := c.tenure; t != nil && t.queue.At.Client.Options.Observer.WantsWaits() {
		c.contended = t.finishContention() || c.contended
	}
	return c.contended
}

func (t *tenure) finishContention() bool {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if t.contention == unannounced {
		t.contention = finished
	}
	return t.contention == announced
}
