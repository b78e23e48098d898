package semaphore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// declaration is how many permits the client says that there are.
type declaration struct {
	permits atomic.Int64 // 0: it does not say
	made    atomic.Int64 // what Redis was told
	at      atomic.Int64 // when, in ns since the epoch
}

// redeclare is how long Redis is believed to know: it may have lost that, and an older client may have been faster to say what
// it thinks.
var redeclare = time.Minute // shorter in a test

// declare tells Redis, now and then. Of clients that say different things the one that began last is right, so that a process
// of a version before does not undo what a new one has said.
func (d *declaration) declare(ctx context.Context, r *grant.Queue) error {
	n, now := d.permits.Load(), time.Now().UnixNano()
	if n == 0 || n == d.made.Load() && now-d.at.Load() < int64(redeclare) {
		return nil
	}
	change, c := lua.Declare, r.Client
	if r.Keys.Family() == lua.Plain {
		change = lua.Initialize // nobody knows how many permits are out
	}
	_, _, _, err := c.Conn.Capacity(ctx, r.Keys, c.NewID(), r.Floor.Load(), change, n, MaxCapacity, c.Began.UnixMicro())
	if err == nil {
		d.made.Store(n)
		d.at.Store(now)
	}
	return err
}

// first declares and then does something, both again when nobody has initialised the semaphore although it was declared: it
// was deleted, or Redis has lost it.
func (d *declaration) first(ctx context.Context, r *grant.Queue, do func() error) error {
	for {
		if err := d.declare(ctx, r); err != nil {
			return err
		}
		err := do()
		if !errors.Is(err, lua.ErrNotInitialized) || d.permits.Load() == 0 {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.made.Store(0)
	}
}
