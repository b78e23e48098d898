package semaphore

import (
	"context"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
	"github.com/latchkey-go/latchkey/internal/session"
)

// base is what both semaphores are made of.
type base struct {
	p    grant.Primitive
	pool *pool // that of the name
}

func newBase(c *latchkey.Client, kind *grant.Kind, name string, o settings) (b base, err error) {
	if o.capacity != nil && (*o.capacity < 1 || *o.capacity > MaxCapacity) {
		return b, session.Wrap(name, session.Invalid("the capacity must be from 1 to %d, not %d", MaxCapacity, *o.capacity))
	}
	if b.p, err = grant.NewPrimitive((*session.Handle)(c).Client(), kind, name, o.leases); err != nil {
		return b, err
	}
	b.pool = b.p.Queue.Commands.(*pool)
	if o.capacity != nil {
		b.pool.declared.permits.Store(int64(*o.capacity))
	}
	b.p.Demand = func(permits int) string { return b.pool.demand(permits, o.flags) }
	return b, nil
}

// validPermits checks the number of a request.
func (b *base) validPermits(n, most int) error {
	if n < 1 || n > most {
		return session.Wrap(b.p.Name, session.Invalid("the number of permits must be from 1 to %d, not %d", most, n))
	}
	return nil
}

// change runs capacity.lua. It is sent until it is answered: each is done once.
func (b *base) change(ctx context.Context, change lua.Change, n int64) (done bool, total, free int64, err error) {
	least := int64(0)
	if change == lua.Add {
		least = -MaxCapacity
	}
	if n < least || n > MaxCapacity {
		return false, 0, 0, session.Wrap(b.p.Name, session.Invalid("the number of permits must be from %d to %d, not %d", least, MaxCapacity, n))
	}
	r, c := b.p.Queue, b.p.Queue.Client
	id := c.NewID()
	_, err = r.Send(ctx, c.Closing, b.p.Name, func(ctx context.Context) error {
		return b.pool.declared.first(ctx, r, func() (err error) { // or a declaration that comes later would undo it
			done, total, free, err = c.Conn.Capacity(ctx, r.Keys, id, r.Floor.Load(), change, n, MaxCapacity, 0)
			return err
		})
	})
	return done, total, free, err
}

// destroy removes the semaphore, and takes away what is held.
func (b *base) destroy(ctx context.Context) (existed bool, err error) {
	r, c := b.p.Queue, b.p.Queue.Client
	id := c.NewID()
	_, err = r.Send(ctx, c.Closing, b.p.Name, func(ctx context.Context) (err error) {
		existed, err = c.Conn.Destroy(ctx, r.Keys, id, r.Floor.Load())
		return err
	})
	return existed, err
}
