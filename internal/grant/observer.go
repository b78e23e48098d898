package grant

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/wait"
)

// queued calls the Queued hook for a waiter that Redis has queued.
func (q *Queue) queued(w *wait.Waiter) {
	hook := q.At.Client.Options.Observer.Queued
	if hook == nil {
		return
	}
	t := q.tenure(w.Number)
	if t == nil { // the tenure is over
		return
	}
	q.mu.Lock()
	e := t.queue.At.NewEvent(t.caller, t.name)
	e.Permits = max(t.permits, 0)
	q.mu.Unlock()
	session.HookOrCrash(func() { hook(e) })
}

// begins returns the time, or zero if the attempt needs no time: reading the clock slows a local hand-off noticeably.
func (p *Primitive) begins() (now time.Time) {
	if o := &p.Queue.At.Client.Options.Observer; p.Shared || o.Acquired != nil || o.Failed != nil {
		now = time.Now()
	}
	return now
}

// acquired calls the Acquired hook for a hold that begins. If the hook panics, acquired releases the hold, because
// its caller does not get it.
func acquired(h *Hold, began time.Time, contended bool) {
	u := turnOf(h)
	t := u.tenure
	u.slowHold()
	hook := t.queue.At.Client.Options.Observer.Acquired
	if hook == nil {
		return
	}
	e := t.queue.At.NewEvent(h.Parent(), t.name)
	e.Token, e.Permits, e.Waited, e.Contended = u.token, t.Weight(), time.Since(began), contended
	session.HookOrUndo(func() { hook(e) }, func() { t.queue.At.Go(func() { _ = h.Unlock(context.Background()) }) })
}

// released calls the Released hook for a turn that has ended well.
func (u *turn) released() {
	if t, o := u.tenure, &u.tenure.queue.At.Client.Options.Observer; o.Released != nil && t.partOf == nil {
		e := t.queue.At.NewEvent(u.first.Parent(), t.name)
		e.Token, e.Permits, e.Held = u.token, t.Weight(), time.Since(u.moment)
		o.Released(e)
	}
}

// lost calls the Lost hook for u, a turn of a lost tenure.
func (u *turn) lost(token int64, reason error) {
	if t, o := u.tenure, &u.tenure.queue.At.Client.Options.Observer; o.Lost != nil {
		e := t.queue.At.NewEvent(u.first.Parent(), t.name)
		e.Token, e.Permits, e.Held, e.Err = token, t.Weight(), time.Since(u.moment), reason
		o.Lost(e)
	}
}

// Attempted calls the Acquired or the Failed hook for an attempt that leaves no tenure.
func (p *Primitive) Attempted(ctx context.Context, permits int, began time.Time, contended bool, err error) {
	r := p.Queue
	hook := r.At.Client.Options.Observer.Acquired
	if err != nil {
		hook = r.At.Client.Options.Observer.Failed
	}
	if hook == nil {
		return
	}
	e := r.At.NewEvent(ctx, p.Name)
	e.Permits, e.Waited, e.Contended, e.Err = max(permits, 0), time.Since(began), contended, err
	hook(e)
}

// GaveBack calls the Released hook for permits without an owner.
func (p *Primitive) GaveBack(ctx context.Context, permits int) {
	if hook := p.Queue.At.Client.Options.Observer.Released; hook != nil {
		e := p.Queue.At.NewEvent(ctx, p.Name)
		e.Permits = permits
		hook(e)
	}
}
