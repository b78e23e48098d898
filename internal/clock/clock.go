// Package clock knows what a server's clock shows, without the trust that it runs like ours (rule 24).
package clock

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is what is known of a server's clock: what it shows at a moment of ours, or a little less. The zero
// value knows nothing. It is safe for concurrent use.
//
// A reply that tells the clock arrives after the server read it. So at that moment the server's clock shows
// at least as much. It shows no more than if the server had read it when the question was sent. Nothing needs
// the two clocks to agree. When the server's was set, or a machine slept, the next reply puts it right.
//
// All numbers are by how many microseconds the server's clock is ahead of our monotonic one, which counts
// from epoch.
type Clock struct {
	ahead atomic.Int64 // 0: not known

	// What the last reading says, for judging others by it: least and most that the clock is ahead. most is 0
	// when there was none.
	least, most, read atomic.Int64 // read: when the question was sent, by our clock

	heardAt atomic.Int64 // when a token last told it, by our clock; 0: none has

	mu        sync.Mutex    // held to write what the last reading says
	refreshed chan struct{} // closed when the refresh that is under way has ended; nil: none is
}

var epoch = time.Now()

// clockTolerance is how far a reading may be from what is known without showing that the clock was set.
// Tokens are readings as a rule, and up to 5 ms ahead. Those of a name whose floor is ahead of the clock can
// be ahead by any time.
const clockTolerance = 20 * time.Millisecond

// skew is by how much two clocks may run apart for each of our microseconds, at the most.
const skew = 0.001

func sinceEpoch(at time.Time) int64 { return at.Sub(epoch).Microseconds() }

// Jump says that a clock was set: by this many microseconds at least and at most. They are negative when it
// was set back. The zero value says that it was not.
type Jump struct{ Least, Most int64 }

// Record takes a reading that has just arrived, in microseconds, and when the question was sent. It returns
// the jump that this shows since the last reading. Readings are compared in the order in which their
// questions were sent: one that was overtaken says nothing.
func (c *Clock) Record(reading int64, sent time.Time) (j Jump) {
	now, asked := sinceEpoch(time.Now()), sinceEpoch(sent)
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.read.Load()
	if c.most.Load() != 0 && asked < last {
		return Jump{}
	}
	least, most := reading-now, reading-asked
	switch c.compare(least, most, asked) {
	case 1:
		j = Jump{least - c.most.Load(), most - c.least.Load()}
	case -1:
		j = Jump{most - c.least.Load(), least - c.most.Load()}
	}
	c.least.Store(least)
	c.most.Store(most)
	c.read.Store(asked)
	c.ahead.Store(least)
	return j
}

// compare compares the answer to a question, which was sent at asked, with the last reading. It returns 1 if
// the clock was set forward in between, -1 if it was set back, and 0 if neither can be told.
func (c *Clock) compare(least, most, asked int64) int {
	before := c.most.Load()
	if before == 0 {
		return 0
	}
	slack := clockTolerance.Microseconds() + int64(skew*float64(max(asked-c.read.Load(), 0)))
	switch {
	case least > before+slack:
		return 1
	case most < c.least.Load()-slack:
		return -1
	}
	return 0
}

// FitsToken takes the token of a fresh grant, which has just arrived, and when the question was sent. It
// reports whether the token fits what is known of the clock. If not, either the clock was set, or the tokens
// of the name are ahead of it. And it reports whether the clock can be reckoned from it. If not, a reading
// would help: there was none yet, or it took so long that it tells little.
func (c *Clock) FitsToken(token int64, sent time.Time) (fits, tells bool) {
	ahead, known := token-sinceEpoch(time.Now()), c.ahead.Load()
	if d := time.Duration(ahead-known) * time.Microsecond; known == 0 || d.Abs() < clockTolerance {
		c.ahead.Store(ahead)
		c.heardAt.Store(sinceEpoch(sent))
		return true, known == 0 || c.most.Load() != 0 // a name that is used once costs no reading
	}
	// Without a reading there is nothing to judge it by, and the clock must be asked: what only tokens have told
	// would stay wrong for ever.
	return c.most.Load() != 0 && c.compare(ahead, token-sinceEpoch(sent), sinceEpoch(sent)) == 0, false
}

// FitsMessage reports whether a time in a message, or a token, fits what is known of the clock. The message
// may be old, so only a time that is too late does not fit.
func (c *Clock) FitsMessage(reading int64) bool {
	now := sinceEpoch(time.Now())
	return c.compare(reading-now, math.MaxInt64, now) == 0
}

// At returns what the clock shows at a moment of ours, or less, in microseconds since 1970; 0 when it is not
// known.
func (c *Clock) At(moment time.Time) int64 {
	ahead := c.ahead.Load()
	if ahead == 0 {
		return 0
	}
	return ahead + sinceEpoch(moment)
}

// reckoned is for how long after a reading the client computes the server's time itself. It sends that time, and
// the script does not call TIME. So the client notices a jump of the clock that much later.
const reckoned = 100 * time.Millisecond

// Reckon returns what the clock shows now, or less, as long as that was heard a moment ago; otherwise 0.
func (c *Clock) Reckon() int64 {
	now, last := sinceEpoch(time.Now()), c.read.Load()
	if heard := c.heardAt.Load(); heard != 0 { // virtual time begins long before epoch
		last = max(last, heard)
	}
	if c.most.Load() == 0 || now-last > reckoned.Microseconds() {
		return 0
	}
	return c.ahead.Load() + now
}

// Latest returns what the clock shows at a moment of ours, or more, as [Clock.At] returns no more; 0 when no
// reading has told it.
func (c *Clock) Latest(moment time.Time) int64 {
	most := c.most.Load()
	if most == 0 {
		return 0
	}
	return most + sinceEpoch(moment)
}

// AtMost is [Clock.Latest] for a moment at which the last reading may be old: the two clocks may have run
// apart since.
func (c *Clock) AtMost(moment time.Time) int64 {
	most, since := c.most.Load(), sinceEpoch(moment)-c.read.Load()
	if most == 0 {
		return 0
	}
	return most + sinceEpoch(moment) + int64(skew*float64(max(since, 0)))
}

// Age is the time since the question of the last reading was sent.
func (c *Clock) Age() time.Duration {
	return time.Duration(sinceEpoch(time.Now())-c.read.Load()) * time.Microsecond
}

// HintPause is the least time between two refreshes that the tokens of one name cause. Where the tokens of a
// name are ahead of the clock, each of its grants causes one.
const HintPause = time.Second

// Refresh has read ask for the clock, in a goroutine that begin starts. It returns a channel that is closed
// when that has ended. A caller that comes while a refresh is under way waits for the same answer.
//
// hinted is when tokens of a name last caused a refresh; nil when something else does. A hint that comes too
// soon after another causes none, and the result is nil.
func (c *Clock) Refresh(hinted *time.Time, begin func(func()), read func()) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refreshed != nil {
		return c.refreshed
	}
	if hinted != nil {
		if time.Since(*hinted) < HintPause {
			return nil
		}
		*hinted = time.Now()
	}
	done := make(chan struct{})
	c.refreshed = done
	begin(func() {
		read()
		c.mu.Lock()
		c.refreshed = nil
		c.mu.Unlock()
		close(done)
	})
	return done
}
