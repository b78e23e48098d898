package contract

import (
	"maps"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/fairlock"
	"github.com/latchkey-go/latchkey/rlock"
	"github.com/latchkey-go/latchkey/rwlock"
	"github.com/latchkey-go/latchkey/spinlock"
)

// Kind makes the lock of a name. A lease that is not 0 is a fixed one.
type Kind func(c *latchkey.Client, name string, fixed time.Duration) (*latchkey.Lock, error)

// Kinds are the locks that one holds alone.
var Kinds = map[string]Kind{
	"rlock": func(c *latchkey.Client, name string, fixed time.Duration) (*latchkey.Lock, error) {
		if fixed > 0 {
			return rlock.New(c, name, latchkey.WithFixedLease(fixed))
		}
		return rlock.New(c, name)
	},
	"fairlock": func(c *latchkey.Client, name string, fixed time.Duration) (*latchkey.Lock, error) {
		if fixed > 0 {
			return fairlock.New(c, name, latchkey.WithFixedLease(fixed))
		}
		return fairlock.New(c, name)
	},
	"write": func(c *latchkey.Client, name string, fixed time.Duration) (*latchkey.Lock, error) {
		l, err := readWrite(c, name, fixed)
		if err != nil {
			return nil, err
		}
		return l.Write(), nil
	},
}

// lingers is longer than what is to be done at once, and shorter than a test waits for what is left behind.
const lingers = 5 * time.Second

// Lingering makes locks that stay with their process for so long. They are not of [Kinds], whose free locks
// are in Redis.
func Lingering(d time.Duration) Kind {
	return func(c *latchkey.Client, name string, fixed time.Duration) (*latchkey.Lock, error) {
		if fixed > 0 {
			return rlock.New(c, name, latchkey.WithFixedLease(fixed), rlock.WithLinger(d))
		}
		return rlock.New(c, name, rlock.WithLinger(d))
	}
}

var lingering = Lingering(lingers)

// AllKinds are [Kinds] and one that lingers.
var AllKinds = func() map[string]Kind {
	all := maps.Clone(Kinds)
	all["lingering"] = lingering
	return all
}()

// EveryKind is [AllKinds], the one that polls, and the half that many hold together. The halves of one name
// on one client are those of one read-write lock.
var EveryKind = func() map[string]Kind {
	every := maps.Clone(AllKinds)
	every["spinlock"], every["read"] = spins, reads
	return every
}()

// lingeringLocks are such a lock among its like, and beside others of its name.
var lingeringLocks = []locks{
	{name: "lingering", kind: lingering, other: lingering},
	{name: "lingering-fairlock", kind: lingering, other: Kinds["fairlock"]},
	{name: "lingering-spin", kind: lingering, other: spins, otherPolls: true},
}

// spins makes a lock whose waiters poll. It is not of [Kinds], whose waiters are seen in the queue.
func spins(c *latchkey.Client, name string, fixed time.Duration) (*latchkey.Lock, error) {
	if fixed > 0 {
		return spinlock.New(c, name, latchkey.WithFixedLease(fixed))
	}
	return spinlock.New(c, name)
}

// reads makes the half of a read-write lock that many hold together.
func reads(c *latchkey.Client, name string, fixed time.Duration) (*latchkey.Lock, error) {
	l, err := readWrite(c, name, fixed)
	if err != nil {
		return nil, err
	}
	return l.Read(), nil
}

func readWrite(c *latchkey.Client, name string, fixed time.Duration) (*rwlock.Lock, error) {
	if fixed > 0 {
		return rwlock.New(c, name, latchkey.WithFixedLease(fixed))
	}
	return rwlock.New(c, name)
}
