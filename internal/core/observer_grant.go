package core

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/wait"
)

// asks is told for whom the tenure competes from now on.
func (t *tenure) asks(caller context.Context) {
	if t.client.options.Observer.Queued != nil {
		t.mu.Lock()
		t.caller = caller
		t.mu.Unlock()
	}
}

func (r *resource) queued(w *wait.Waiter) {
	hook := r.client.options.Observer.Queued
	if hook == nil {
		return
	}
	t := r.tenure(w.Number)
	if t == nil { // it has been ended meanwhile
		return
	}
	t.mu.Lock()
	e := t.event(t.caller, t.name)
	e.Permits = max(t.permits, 0)
	t.mu.Unlock()
	contained(func() { hook(e) })
}

// acquired tells that the hold begins. If the hook panics, it is released: nobody has it.
func (h *Hold) acquired(began time.Time) {
	t := h.turn.tenure
	hook := t.client.options.Observer.Acquired
	if hook == nil {
		return
	}
	e := t.event(h.parent, t.name)
	e.Token, e.Permits, e.Waited = h.turn.token, t.Weight(), time.Since(began)
	whole(func() { hook(e) }, func() { t.Go(func() { _ = h.Unlock(context.Background()) }) })
}

func (u *turn) released() {
	if t, o := u.tenure, &u.tenure.client.options.Observer; o.Released != nil {
		e := t.event(u.first.parent, t.name)
		e.Token, e.Permits, e.Held = u.token, t.Weight(), time.Since(u.moment)
		o.Released(e)
	}
}

// lost is told of a tenure whose last turn was u.
func (u *turn) lost(token int64, reason error) {
	if t, o := u.tenure, &u.tenure.client.options.Observer; o.Lost != nil {
		e := t.event(u.first.parent, t.name)
		e.Token, e.Permits, e.Held, e.Err = token, t.Weight(), time.Since(u.moment), reason
		o.Lost(e)
	}
}

// attempted is told how an attempt ended that leaves no tenure.
func (p *primitive) attempted(ctx context.Context, permits int, began time.Time, err error) {
	r := p.resource
	hook := r.client.options.Observer.Acquired
	if err != nil {
		hook = r.client.options.Observer.Failed
	}
	if hook == nil {
		return
	}
	e := r.event(ctx, p.name)
	e.Permits, e.Waited, e.Err = max(permits, 0), time.Since(began), err
	hook(e)
}

// gaveBack is told of permits without an owner.
func (p *primitive) gaveBack(ctx context.Context, permits int) {
	if hook := p.resource.client.options.Observer.Released; hook != nil {
		e := p.resource.event(ctx, p.name)
		e.Permits = permits
		hook(e)
	}
}
