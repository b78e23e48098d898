package semaphore

import (
	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// base is what [Semaphore] and [Counting] have in common: a name, how its permits are acquired, and the
// pool that all semaphores of this name on the client share.
type base struct {
	p    grant.Primitive
	pool *pool
}

func newBase(c *latchkey.Client, kind *grant.Kind, name string, o settings) (b base, err error) {
	if o.capacity != nil && (*o.capacity < 1 || *o.capacity > MaxCapacity) {
		return b, fail.Wrap(name, fail.Invalid("the capacity must be from 1 to %d, not %d", MaxCapacity, *o.capacity))
	}
	terms := terms.Collect("semaphore", terms.OptionsAll, append([]terms.Option{o.passing()}, o.leases...))
	if b.p, err = grant.NewPrimitive((*session.Handle)(c).Client(), kind, name, terms); err != nil {
		return b, err
	}
	b.p.Delegate = b.p.Passable()
	if b.p.Delegate && (o.demand.Pass || o.demand.Grow) {
		return b, fail.Wrap(name, fail.Invalid("who waits in a line cannot be passed: a budget excludes overtaking and waiting for capacity"))
	}
	b.pool = b.p.Queue.Commands.(*pool)
	if o.capacity != nil {
		b.pool.declared.capacity.Store(int64(*o.capacity))
	}
	b.p.Demand = func(permits int) lua.Demand { return b.pool.demand(permits, o.demand) }
	return b, nil
}

// validPermits checks how many permits a request is for.
func (b *base) validPermits(n, most int) error {
	if n < 1 || n > most {
		return fail.Wrap(b.p.Name, fail.Invalid("the number of permits must be from 1 to %d, not %d", most, n))
	}
	return nil
}
