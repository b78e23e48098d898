// Package spinlock is a lock across processes whose waiters poll, as Redisson's RSpinLock: for servers and
// proxies without pub/sub, and for users who may not subscribe.
//
// An attempt takes the lock when it is free and nobody is queued for it. Otherwise the waiter pauses and asks
// again. The pauses are random, up to a span that doubles with each: exponential backoff with full jitter
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). See [WithBackoff].
//
// So nobody is told anything, and nobody is in any order: whoever happens to ask next after an Unlock has the
// lock. A waiter may be overtaken any number of times. Where subscriptions are possible, package rlock needs
// fewer commands, hands over sooner and is fairer.
//
//	c, err := latchkey.Open("redis://localhost:6379", latchkey.WithoutPubSub())
//	...
//	lock, err := spinlock.New(c, "orders:42")
//
// # Beside other locks
//
// A spin lock and the locks of packages rlock and fairlock of one name are one lock. So is Redisson's RLock
// of that name. A spin lock respects their queue: it takes nothing while somebody waits there. So beside
// processes that queue without a break it may wait for as long as they do.
//
// Its Unlock hands the lock to the first in that queue. If the user may not publish, that waiter is not told.
// It asks within two seconds.
//
// # Guarantees
//
// Those of package latchkey, but for the waiters: at most one trusted hold, tokens that grow, nothing left
// behind. After its holder was killed, the lock is taken by the first attempt after the end of the lease.
//
// On a client with [latchkey.WithoutPubSub] a hold that ForceUnlock takes away is lost at its next renewal,
// after a third of its lease at the latest. With a subscription it is lost at once.
package spinlock

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/hold"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// Lock is what [New] returns. Its methods are those of every lock: see [latchkey.Lock]. Where they speak of
// the queue, a spin lock has no place in it, and its holds have no sequence.
type Lock = latchkey.Lock

// Option configures a lock. It is [latchkey.LockOption], so that one list serves several packages.
type Option = latchkey.LockOption

// WithBackoff sets the pauses between two attempts. Each is random: up to first after the first attempt, and
// up to twice as much after each further one, but never more than last. first is at least 100 µs, last at
// least first and at most a minute. Default: 1 ms and 128 ms. Shorter pauses hand over sooner, and cost Redis
// more.
func WithBackoff(first, last time.Duration) Option { return terms.WithPolling(first, last) }

// New returns the lock of a name. It does no I/O. The name is as for package rlock. New returns ErrInvalid
// for other names, a nil client, options out of range, and those that are another package's.
func New(c *latchkey.Client, name string, opts ...Option) (*Lock, error) {
	o := terms.Collect("spinlock", terms.OptionsCommon|terms.OptionBackoff, opts)
	l, err := lock.New((*session.Handle)(c).Client(), name, false, o.Polling())
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
