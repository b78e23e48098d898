package session

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// clock is what is known of a server's clock: what it shows at a moment of ours, or a little less. A reply
// that tells it arrives after it was read, so at that moment the server's clock shows at least as much; and
// it shows no more than it would if it had been read when the question was sent. Nothing needs the clocks to
// agree; where the server's was set, or a machine slept, the next reply puts it right. The zero value knows
// nothing.
//
// All is in microseconds that the server's clock is ahead of our monotonic one, since epoch.
type Clock struct {
	ahead atomic.Int64 // 0: not known

	// What the last reading says, for judging others by it: least and most that it is ahead. most is 0 when
	// there was none.
	least, most, read atomic.Int64 // read: when it was sent, by our clock

	mu      sync.Mutex    // of who writes what the last reading says
	looking chan struct{} // closed when a look has ended; nil while nobody looks
}

var epoch = time.Now()

// plausible is how far from what is known of the clock a token may be and still count as a reading of it:
// tokens are that reading as a rule, but can be ahead. A reading that differs by more shows that the clock
// was set.
const plausible = 20 * time.Millisecond

// skew is by how much two clocks may run apart for each of our microseconds, at the most.
const skew = 0.001

func sinceEpoch(at time.Time) int64 { return at.Sub(epoch).Microseconds() }

// jump is that a clock was set: by this many microseconds at least and at most, back if they are negative.
type jump struct{ least, most int64 }

// told is called with a reading, in microseconds, when it has arrived, and when the question was sent. It
// returns what that shows of a jump since the last reading; nothing when there was none. Readings are
// compared in the order in which they were sent.
func (c *Clock) told(reading int64, sent time.Time) (j jump) {
	now, asked := sinceEpoch(time.Now()), sinceEpoch(sent)
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.read.Load()
	if c.most.Load() != 0 && asked < last {
		return jump{}
	}
	least, most := reading-now, reading-asked
	switch c.verdict(least, most, asked) {
	case 1:
		j = jump{least - c.most.Load(), most - c.least.Load()}
	case -1:
		j = jump{most - c.least.Load(), least - c.most.Load()}
	}
	c.least.Store(least)
	c.most.Store(most)
	c.read.Store(asked)
	c.ahead.Store(least)
	return j
}

// verdict compares what a question that was sent then says with the last reading: 1 if the clock was set
// forward in between, -1 if it was set back, 0 if not, as far as can be told.
func (c *Clock) verdict(least, most, asked int64) int {
	before := c.most.Load()
	if before == 0 {
		return 0
	}
	slack := plausible.Microseconds() + int64(skew*float64(max(asked-c.read.Load(), 0)))
	switch {
	case least > before+slack:
		return 1
	case most < c.least.Load()-slack:
		return -1
	}
	return 0
}

// token is called with the token of a fresh grant when it has arrived, and when the question was sent. It
// reports whether it fits what is known of the clock: otherwise that was set, or the tokens of the name are
// ahead of it.
func (c *Clock) FitsToken(token int64, sent time.Time) (fits bool) {
	ahead, known := token-sinceEpoch(time.Now()), c.ahead.Load()
	if d := time.Duration(ahead-known) * time.Microsecond; known == 0 || d.Abs() < plausible {
		c.ahead.Store(ahead)
		return true
	}
	// With no reading to judge it by it is worth asking: one that only tokens have told would stay wrong for ever.
	return c.most.Load() != 0 && c.verdict(ahead, token-sinceEpoch(sent), sinceEpoch(sent)) == 0
}

// message reports whether what a message says of the clock, or a token, fits what is known: it may be old.
func (c *Clock) FitsMessage(reading int64) (fits bool) {
	now := sinceEpoch(time.Now())
	return c.verdict(reading-now, math.MaxInt64, now) == 0
}

// at returns what the clock shows at a moment of ours, or less; 0 when it is not known.
func (c *Clock) At(moment time.Time) int64 {
	ahead := c.ahead.Load()
	if ahead == 0 {
		return 0
	}
	return ahead + sinceEpoch(moment)
}

// age is how long ago the question of the last reading was sent.
func (c *Clock) age() time.Duration {
	return time.Duration(sinceEpoch(time.Now())-c.read.Load()) * time.Microsecond
}

// looks is the least time between two looks that the tokens of one name ask for: where they are ahead of the
// clock each grant does so.
const looks = time.Second

// look has ask read the clock, in a goroutine that begin starts. It returns what is closed when that has
// ended: those who come while somebody looks wait for the same answer. A hint of a name is not followed, and
// the result is nil, when one of that name just before it was: hinted says when. It is nil for what is no
// hint.
func (c *Clock) look(hinted *time.Time, begin func(func()), ask func()) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looking != nil {
		return c.looking
	}
	if hinted != nil {
		if time.Since(*hinted) < looks {
			return nil
		}
		*hinted = time.Now()
	}
	done := make(chan struct{})
	c.looking = done
	begin(func() {
		ask()
		c.mu.Lock()
		c.looking = nil
		c.mu.Unlock()
		close(done)
	})
	return done
}
