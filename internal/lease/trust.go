package lease

import (
	"sync/atomic"
	"time"
)

// trust is a moment on both clocks: until then a lease can be trusted. It may be read at any time.
type trust struct{ monotonic, wall atomic.Int64 }

var epoch = time.Now()

// WallAhead is how many nanoseconds this package adds to the wall clock of the machine. Only tests set it, because
// they cannot set the clock of a machine.
var WallAhead atomic.Int64

// wall is the wall clock, in nanoseconds since 1970.
func wall(now time.Time) int64 { return now.UnixNano() + WallAhead.Load() }

func (t *trust) set(at time.Time) {
	t.monotonic.Store(int64(at.Sub(epoch)))
	t.wall.Store(wall(at))
}

// end ends the trust, also if the wall clock is set back after that. The monotonic moment stays: it says for how long
// the trust would have lasted.
func (t *trust) end() { t.wall.Store(0) }

// left returns the time until the earlier of the two moments.
func (t *trust) left() time.Duration { return t.leftAt(time.Now()) }

func (t *trust) leftAt(now time.Time) time.Duration {
	return min(time.Duration(t.monotonic.Load())-now.Sub(epoch), time.Duration(t.wall.Load()-wall(now)))
}

// leftMonotonic returns the time that is left by the monotonic clock alone. Jumps of the server's clock are measured
// by this clock.
func (t *trust) leftMonotonic() time.Duration {
	return time.Duration(t.monotonic.Load()) - time.Since(epoch)
}

// Left returns how long the lease can still be trusted; 0 or less when it is over. It takes no lock.
func (i *Item) Left() time.Duration { return i.trust.left() }

// LeftAt is Left for a caller that has just looked at the clock.
func (i *Item) LeftAt(now time.Time) time.Duration { return i.trust.leftAt(now) }

// LeftMonotonic is Left by the monotonic clock alone. If LeftMonotonic is more than 0, and Left is not, the wall
// clock went ahead: the machine was suspended, or its clock was set. Redis may still have the lease.
func (i *Item) LeftMonotonic() time.Duration { return i.trust.leftMonotonic() }

// Expiry returns why the present trust is over: the reason for which it was ended before its time; or that it reached
// End; or that the lease was not renewed in time.
func (i *Item) Expiry() error {
	if why := i.lost.Load(); why != nil {
		return *why
	}
	if i.reachesEnd(epoch.Add(time.Duration(i.trust.monotonic.Load()))) {
		return ErrEnded
	}
	return ErrExpired
}
