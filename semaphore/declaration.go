package semaphore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// declaration is the capacity that the client declares, by WithCapacity. One that declares none says from time to time
// that it uses the semaphore: another client may have declared a capacity, and Redis forgets an unused one.
type declaration struct {
	capacity atomic.Int64 // 0: it declares none
	sent     atomic.Int64 // the capacity that Redis was sent last; 0: none, or Redis has lost it
	sentAt   atomic.Int64 // when, in ns since the epoch
}

// redeclareAfter is how long the client believes that Redis has the capacity. Redis may have lost it, and
// an older client may have declared another one first.
var redeclareAfter = time.Minute // shorter in a test

// usesAfter is how often a client that declares none says that it uses the semaphore.
const usesAfter = time.Hour

// declare sends the capacity to Redis if that is due. When clients declare different capacities, Redis
// keeps that of the client that was opened last: so a process of an old version does not undo what a new
// one declares.
func (p *pool) declare(ctx context.Context) error {
	d, c := &p.declared, p.queue.At.Client
	n, now, due := d.capacity.Load(), time.Now().UnixNano(), redeclareAfter
	if n == 0 {
		due = usesAfter
	}
	if n == d.sent.Load() && now-d.sentAt.Load() < int64(due) {
		return nil
	}
	_, _, _, err := c.Conn.Capacity(ctx, p.queue.At.Keys, c.NewID(), p.queue.At.Floor.Load(), lua.Declare, n, MaxCapacity, c.Began.UnixMicro())
	if err == nil {
		d.sent.Store(n)
		d.sentAt.Store(now)
	}
	return err
}

// afterDeclaring declares the capacity, if that is due, and then calls do. It does both again when do
// finds the semaphore not initialized although this client has declared its capacity: somebody deleted the
// semaphore, or Redis has lost it.
func (p *pool) afterDeclaring(ctx context.Context, do func() error) error {
	for {
		if err := p.declare(ctx); err != nil {
			return err
		}
		err := do()
		if !errors.Is(err, lua.ErrNotSet) || p.declared.capacity.Load() == 0 {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.declared.sent.Store(0)
	}
}
