package semaphore

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// changeCapacity changes how many permits there are (permit/capacity.lua). It is sent until Redis answers,
// and takes effect once. It declares the capacity first: a declaration that came later would undo the
// change.
func (b *base) changeCapacity(ctx context.Context, change lua.Change, n int64) (done bool, total, free int64, err error) {
	least := int64(0)
	if change == lua.Add {
		least = -MaxCapacity
	}
	if n < least || n > MaxCapacity {
		return false, 0, 0, fail.Wrap(b.p.Name, fail.Invalid("the number of permits must be from %d to %d, not %d", least, MaxCapacity, n))
	}
	q, c := b.p.Queue, b.p.Queue.At.Client
	id := c.NewID()
	_, err = q.At.Send(ctx, c.Closing, b.p.Name, func(ctx context.Context) error {
		return b.pool.afterDeclaring(ctx, func() (err error) {
			done, total, free, err = c.Conn.Capacity(ctx, q.At.Keys, id, q.At.Floor.Load(), change, n, MaxCapacity, 0)
			return err
		})
	})
	return done, total, free, err
}

// delete removes the semaphore, so that its holders lose their permits.
func (b *base) delete(ctx context.Context) (existed bool, err error) {
	q, c := b.p.Queue, b.p.Queue.At.Client
	id := c.NewID()
	_, err = q.At.Send(ctx, c.Closing, b.p.Name, func(ctx context.Context) (err error) {
		if err := q.At.Client.Records.SayForced(ctx, &q.At); err != nil {
			return err
		}
		existed, err = c.Conn.Destroy(ctx, q.At.Keys, id, q.At.Floor.Load())
		return err
	})
	if err == nil && !existed {
		q.At.Client.Records.UnsayForced(ctx, &q.At)
	}
	return existed, err
}
