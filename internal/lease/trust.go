package lease

import (
	"sync/atomic"
	"time"
)

// Trust is a moment on both clocks. It may be read at any time.
type Trust struct{ monotonic, wall atomic.Int64 }

var epoch = time.Now()

func (t *Trust) set(at time.Time) {
	t.monotonic.Store(int64(at.Sub(epoch)))
	t.wall.Store(at.UnixNano())
}

// left is the time until the earlier of both.
func (t *Trust) left() time.Duration {
	now := time.Now()
	return min(time.Duration(t.monotonic.Load())-now.Sub(epoch), time.Duration(t.wall.Load()-now.UnixNano()))
}

// steady is the time until it by the monotonic clock alone, which is what the server's clock is compared
// with.
func (t *Trust) steady() time.Duration { return time.Duration(t.monotonic.Load()) - time.Since(epoch) }

// Left is how long the lease can still be trusted; 0 or less: no longer.
func (i *Item) Left() time.Duration { return i.trust.left() }
