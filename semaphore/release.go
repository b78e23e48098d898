package semaphore

import (
	"context"
	"fmt"

	"github.com/latchkey-go/latchkey/internal/fail"
	"github.com/latchkey-go/latchkey/internal/lua"
)

// plainRelease is one release of plain permits. It takes effect once: Redis keeps a record of its number.
type plainRelease struct {
	pool    *pool
	number  uint64
	request lua.Request
	up      func(context.Context) error // waits until Redis is back, while that keeps the record
	stray   bool                        // a copy was not answered, and may still run
}

func (p *pool) newPlainRelease(n int) *plainRelease {
	number := p.queue.At.Client.IDs.Next()
	return &plainRelease{pool: p, number: number, request: lua.Put(p.queue.At.Client.IDs.ID(number), int64(n)), up: p.queue.At.UpWhileRecorded()}
}

// send sends the release until Redis answers or ctx ends. It reports whether it is over; otherwise it is
// to be called again.
func (r *plainRelease) send(ctx context.Context) (over bool, err error) {
	answered, err := r.pool.queue.At.RetryUntilAnswered(ctx, r.up, &r.stray, func(ctx context.Context) error {
		return r.pool.put(ctx, r.request)
	})
	switch {
	case err == nil:
		if answered && !r.stray {
			r.pool.acks.Add(r.number)
		}
		return answered, nil
	case answered:
		return true, fail.WithSentinel(err)
	case ctx.Err() != nil:
		return false, fail.WithSentinel(err)
	default: // Redis may have dropped the record, or the client is closed
		return true, fmt.Errorf("%w: %w", fail.ErrUnknownOutcome, fail.WithSentinel(err))
	}
}
