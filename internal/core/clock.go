package core

import (
	"sync/atomic"
	"time"
)

// clock is what is known of a server's clock: what it shows at a moment of ours, or a little less. A reply
// that tells it arrives after it was read, so at that moment the server's clock shows at least as much.
// Nothing needs the clocks to agree; where the server's was set back, or a machine slept, the next reply puts
// it right. The zero value knows nothing.
type clock struct {
	ahead atomic.Int64 // of our monotonic clock since epoch, in microseconds; 0: not known
}

var epoch = time.Now()

// plausible is how far from what is known of the clock a token may be and still count as a reading of it:
// tokens are that reading as a rule, but can be ahead.
const plausible = 20 * time.Millisecond

// told is called with a reading, in microseconds, when it has arrived.
func (c *clock) told(reading int64) { c.ahead.Store(reading - time.Since(epoch).Microseconds()) }

// token is called with the token of a reply, when it has arrived.
func (c *clock) token(token int64) {
	ahead, known := token-time.Since(epoch).Microseconds(), c.ahead.Load()
	if d := time.Duration(ahead-known) * time.Microsecond; known == 0 || d.Abs() < plausible {
		c.ahead.Store(ahead)
	}
}

// at returns what the clock shows at a moment of ours, or less; 0 when it is not known.
func (c *clock) at(moment time.Time) int64 {
	ahead := c.ahead.Load()
	if ahead == 0 {
		return 0
	}
	return ahead + moment.Sub(epoch).Microseconds()
}
