// Package rlock is a lock across processes, as Redisson's RLock: blocking, re-entrant by context, leased
// and fenced.
//
// The goroutines of one process stand in a line inside it, first come, first served. The one at the head
// queues in Redis, where processes take turns in the order in which they came. So waiting costs Redis one
// queue entry for each process, however many goroutines wait. For strict order among all waiters of all
// processes see package fairlock.
//
// When its process holds the lock, Unlock passes it to the next goroutine in line without a command: that
// takes about a microsecond. Once another process waits, only a small budget of such hand-offs is left
// before that process gets its turn: see [WithBudget]. Such an Unlock does not ask Redis whether the lock
// was still held: it relies on the lease, and on the message of a ForceUnlock. Holds with [latchkey.WithMinHold],
// [latchkey.WithMaxHold] or [latchkey.WithFixedLease] always go through Redis.
//
// # Guarantees
//
// Those of package latchkey: at most one trusted hold, tokens that grow, no forgotten waiter, nothing left
// behind. Locks of one name are one lock, whether they come from package rlock, fairlock or spinlock, or from
// a Java process that uses Redisson's RLock.
package rlock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// Lock is what [New] returns. Its methods are those of every lock: see [latchkey.Lock].
type Lock = latchkey.Lock

// Option configures a lock. It is [latchkey.LockOption], so that one list serves several packages.
type Option = latchkey.LockOption

// WithBudget bounds how long the lock stays among the goroutines of this process while other processes
// wait. Once this process knows that they do, at most holds further holds begin here, and none later than
// span, before another process gets its turn. Should the message that says that they wait be lost, they
// get it four spans after this process got the lock. A longer budget means fewer commands, a shorter one
// less waiting for the others. From 1 to 5000 holds and up to a second; default: 32 holds and 5 ms. For none
// see [WithoutLocalHandOff]. Among locks of one name, the budget of the one that is next in line counts.
func WithBudget(holds int, span time.Duration) Option { return terms.WithBudget(holds, span) }

// WithoutLocalHandOff has every hold go through Redis: an Unlock gives the lock back, also when other
// goroutines of this process wait. It excludes [WithLinger]. Of this and [WithBudget] the last counts.
func WithoutLocalHandOff() Option { return terms.WithoutLocalHandOff() }

// WithLinger has a lock that was unlocked stay with this process for up to d, as long as nobody else wants
// it. To take it again then costs no command. It is for a lock that one process takes again and again, and
// others rarely. The end counts from the first Unlock since the process got the lock: further uses do not
// put it off. From 1 ms to a minute; default: none.
//
// A lock that lingers is not held. The first request of another client ends it at once: whoever would queue
// has the lock after two trips instead of one, and a TryLock asks a second time when the process has
// answered, after 50 ms at most. Should the message that says so be lost, the others wait for d, or for
// four spans of the budget (see [WithBudget]) if these are longer. That is also how long they wait who send
// no such message: users who may not publish, and Java processes. After a crash the lock is free after its
// lease, as always. ForceUnlock, Shutdown and Close end it, and no hook is called for that.
//
// Where others ask again and again before the lock is used here once more, it lingers seldom: after the
// second time in a row 4 times it does not, then 8, 16, up to 64 times. So processes that take turns lose
// little.
//
// An Unlock that leaves the lock to linger does not ask Redis whether it was still held, as in a hand-off
// inside the process. The lock does not linger while the client's subscription is down, nor after holds with
// [latchkey.WithMinHold], [latchkey.WithMaxHold] or [latchkey.WithFixedLease], nor what package multilock
// took together with others in one script. [WithoutLocalHandOff] excludes it. Another lock of the name on
// this client takes what lingers as well; it lingers on if that lock has the option too.
func WithLinger(d time.Duration) Option { return terms.WithLinger(d) }

// New returns the lock of a name. It does no I/O. The name, after the client's key prefix, is a key in
// Redis: 1 to 1024 bytes, with balanced braces, of which the first pair is not empty. New returns
// ErrInvalid for other names, a nil client, options out of range, and those that are another package's.
func New(c *latchkey.Client, name string, opts ...Option) (*Lock, error) {
	l, err := lock.New((*session.Handle)(c).Client(), name, true, terms.Collect("rlock", terms.OptionsCommon|terms.OptionBudget|terms.OptionHandOff|terms.OptionLinger, opts))
	return (*Lock)(l), err
}

// Do is [latchkey.Lock.Do] of the lock of a name, for names that are made for one use, as of a request. An
// error of [New] matches [latchkey.ErrNotRun] as well.
func Do(ctx context.Context, c *latchkey.Client, name string, f func(context.Context, *latchkey.Hold) error, opts ...Option) error {
	l, err := New(c, name, opts...)
	if err != nil {
		return hold.NotRun(err)
	}
	return l.Do(ctx, f)
}
