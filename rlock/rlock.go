// Package rlock is a lock across processes, as Redisson's RLock: blocking, re-entrant by context, leased and fenced.
// Its guarantees are in package latchkey.
//
// The goroutines of one process stand in a line inside it, first come, first served. The one at the head queues in
// Redis, where processes take turns in the order in which they came. So waiting costs Redis one queue entry for each
// process. For strict order among all waiters of all processes see package fairlock.
//
// When its process holds the lock, Unlock passes it to the next goroutine in line without a command. Once another
// process waits, only a small budget of such hand-offs is left: see [WithBudget]. Such an Unlock does not ask Redis
// whether the lock was still held. Holds with [latchkey.WithMinHold], [latchkey.WithMaxHold] or
// [latchkey.WithFixedLease] always go through Redis.
//
// Locks of one name are one lock, whether they come from package rlock, fairlock or spinlock, or from a Java process
// that uses Redisson's RLock.
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

// Lock is what New returns: see [latchkey.Lock].
type Lock = latchkey.Lock

// Option configures a lock.
type Option = latchkey.LockOption

// WithBudget bounds how long the lock stays among the goroutines of this process once it knows that other processes
// wait: at most holds further holds begin here, and none later than span. If the message that they wait is lost, they
// get the lock after four spans. A longer budget means fewer commands, a shorter one less waiting for the others. From
// 1 to 5000 holds and up to a second; default: 32 holds and 5 ms. Among locks of one name, the budget of the one that
// is next in line counts.
func WithBudget(holds int, span time.Duration) Option { return terms.WithBudget(holds, span) }

// WithoutLocalHandOff has every hold go through Redis. It excludes [WithLinger]. Of this and [WithBudget] the last
// counts.
func WithoutLocalHandOff() Option { return terms.WithoutLocalHandOff() }

// WithLinger has a lock that was unlocked stay with this process for up to d after the first Unlock, until another
// client wants it. To take it again then costs no command. It is for a lock that one process takes again and again,
// and others rarely. From 1 ms to a minute; default: none.
//
// A lock that lingers is not held. The first request of another client ends it: that waiter has the lock after two
// trips instead of one, and a TryLock asks a second time, after 50 ms at most. If that message is lost, or the others
// send none, as Java processes, they wait for d, or for four spans of the budget. If others keep taking the lock, it
// lingers less often.
//
// An Unlock that leaves the lock to linger does not ask Redis whether it was still held. After holds with
// [latchkey.WithMinHold], [latchkey.WithMaxHold] or [latchkey.WithFixedLease], or of package multilock, it does not
// linger. [WithoutLocalHandOff] excludes it.
func WithLinger(d time.Duration) Option { return terms.WithLinger(d) }

// New returns the lock of a name. It does no I/O. The name, after the client's key prefix, is a key in Redis: 1 to
// 1024 bytes, with balanced braces whose first pair is not empty. New returns ErrInvalid for other names, a nil
// client, options out of range, and options of another package.
func New(c *latchkey.Client, name string, opts ...Option) (*Lock, error) {
	l, err := lock.New((*session.Handle)(c).Client(), name, true, terms.Collect("rlock", terms.OptionsCommon|terms.OptionBudget|terms.OptionHandOff|terms.OptionLinger, opts))
	return (*Lock)(l), err
}

// Do is [latchkey.Lock.Do] for a name that is made for one use, as of a request. An error of New matches
// latchkey.ErrNotRun as well.
func Do(ctx context.Context, c *latchkey.Client, name string, f func(context.Context, *latchkey.Hold) error, opts ...Option) error {
	l, err := New(c, name, opts...)
	if err != nil {
		return hold.NotRun(err)
	}
	return l.Do(ctx, f)
}
