package traffic

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/redlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/robustness/plan"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

// lockOf returns a lock of an object in one of the ways in which it can be made, and whether its holds end by
// themselves.
func (w *worker) lockOf(rng *rand.Rand, c *client, o plan.Object, reads bool) (l *latchkey.Lock, ends bool) {
	variant := rng.IntN(variants)
	return w.lockIn(c, o, variant, reads), endsByItself(variant)
}

// again returns a lock with which what is held can be re-entered.
func (w *worker) again(rng *rand.Rand, h held, reads bool) *latchkey.Lock {
	return w.lockIn(h.client, h.object, rng.IntN(noReentry), reads)
}

// lockIn returns the lock of a client in one of the ways.
func (w *worker) lockIn(c *client, o plan.Object, variant int, reads bool) *latchkey.Lock {
	variant = w.unlessShort(o, variant)
	key := fmt.Sprint(o.Key, variant)
	made, known := c.handles.Load(key)
	if !known {
		made = latchkey.Must(w.newLock(c, o, variant))
		c.handles.Store(key, made)
	}
	both, halves := made.(*rwlock.Lock)
	switch {
	case halves && both.Name() != c.name(o):
		panic("a read-write lock is called " + both.Name())
	case halves && reads:
		return both.Read()
	case halves:
		return both.Write()
	}
	return made.(*latchkey.Lock)
}

// The variants whose holds end by themselves.
const (
	endsFixed = 1
	endsMost  = 2
)

// unlessShort is the variant, or one with a long lease: where a lease is short, all who wait ask as often.
func (w *worker) unlessShort(o plan.Object, variant int) int {
	if o.Lone && w.Calm() && variant <= briefLease {
		return 0
	}
	if o.Family == plan.Red && w.Calm() && variant == known { // it is unavailable while its servers are young
		return 0
	}
	return variant
}

// There are so many variants. Of locks, those from spins on are spin locks.
const (
	variants = 16
	spins    = 13
)

// polls reports whether a waiter for this variant of an object stands in no queue.
func (c *client) polls(o plan.Object, variant int) bool {
	return o.Mixed() && (c.what == mute || variant >= spins)
}

func endsByItself(variant int) bool { return variant == endsFixed || variant == endsMost }

const (
	fixed = 400 * time.Millisecond
	brief = 300 * time.Millisecond
)

// Other variants that are named.
const (
	briefLease = 3 // a lease that is shorter than the longest holds
	noReentry  = 8
	watched    = 9 // a wait ends when it is in a circle
	known      = 5 // a redlock counts servers that know its name, or have been up for long
)

func (w *worker) newLock(c *client, o plan.Object, variant int) (any, error) {
	name := c.name(o)
	switch o.Family {
	case plan.Red:
		clients := append([]*latchkey.Client{c.Client}, c.others...)
		options := [][]redlock.Option{
			endsFixed: {latchkey.WithFixedLease(fixed)}, endsMost: {latchkey.WithMaxHold(fixed)},
			briefLease: {latchkey.WithLease(brief)}, noReentry: {latchkey.WithoutReentry()}, known: {redlock.WithUptime(plan.LongestLease)}, 15: nil,
		}
		return redlock.New(clients, name, options[variant]...)
	case plan.Halves:
		options := [][]rwlock.Option{
			endsFixed: {latchkey.WithFixedLease(fixed)}, endsMost: {latchkey.WithMaxHold(fixed)},
			briefLease: {latchkey.WithLease(brief)}, 4: {latchkey.WithMinHold(plan.MinHold)}, 5: {rwlock.WithoutLocalHandOff()},
			6: {rwlock.WithBudget(4, time.Millisecond)}, noReentry: {latchkey.WithoutReentry()}, watched: {latchkey.WithDeadlockCheck()}, 15: nil,
		}
		return rwlock.New(c.Client, name, options[variant]...)
	case plan.Fair:
		options := [][]latchkey.LockOption{ // those of all locks
			endsFixed: {latchkey.WithFixedLease(fixed)}, endsMost: {latchkey.WithMaxHold(fixed)},
			briefLease: {latchkey.WithLease(brief)}, 4: {latchkey.WithMinHold(plan.MinHold)}, noReentry: {latchkey.WithoutReentry()},
			watched: {latchkey.WithDeadlockCheck()}, 15: nil,
		}
		if w.Worker == 1 {
			options = [][]fairlock.Option{
				endsFixed: {latchkey.WithFixedLease(fixed)}, endsMost: {latchkey.WithMaxHold(fixed)},
				briefLease: {latchkey.WithLease(brief)}, 4: {latchkey.WithMinHold(plan.MinHold)}, noReentry: {latchkey.WithoutReentry()},
				watched: {latchkey.WithDeadlockCheck()}, 15: nil,
			}
		}
		return fairlock.New(c.Client, name, options[variant]...)
	}
	if c.polls(o, variant) {
		options := [][]spinlock.Option{
			endsFixed: {latchkey.WithFixedLease(fixed)}, endsMost: {latchkey.WithMaxHold(fixed)},
			briefLease: {latchkey.WithLease(brief)}, 4: {spinlock.WithBackoff(time.Millisecond, 8*time.Millisecond)}, 5: {latchkey.WithMinHold(plan.MinHold)},
			noReentry: {latchkey.WithoutReentry()}, watched: {latchkey.WithDeadlockCheck()}, 15: nil,
		}
		return spinlock.New(c.Client, name, options[variant]...)
	}
	if variant >= 10 {
		return fairlock.New(c.Client, name)
	}
	options := [][]rlock.Option{
		endsFixed: {latchkey.WithFixedLease(fixed)}, endsMost: {latchkey.WithMaxHold(fixed)},
		briefLease: {latchkey.WithLease(brief)}, 4: {latchkey.WithMinHold(plan.MinHold)}, 5: {rlock.WithoutLocalHandOff()},
		6: {rlock.WithBudget(4, time.Millisecond)}, 7: {rlock.WithLinger(50 * time.Millisecond)}, noReentry: {latchkey.WithoutReentry()},
		watched: {latchkey.WithDeadlockCheck()}, 15: nil,
	}
	return rlock.New(c.Client, name, options[variant]...)
}
