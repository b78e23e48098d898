// Package spinlock is a lock across processes whose waiters poll, as Redisson's RSpinLock: for servers and proxies
// without pub/sub, and for users who may not subscribe.
//
//	c, err := latchkey.Open("redis://localhost:6379", latchkey.WithoutPubSub())
//	...
//	lock, err := spinlock.New(c, "orders:42")
//
// An attempt takes the lock when it is free and no waiter is queued for it. Otherwise the waiter pauses and asks
// again. The pauses are random, up to a span that doubles with each: exponential backoff with full jitter
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). A waiter may be overtaken any number of
// times. If you can subscribe, package rlock needs fewer commands, hands over sooner and is fairer.
//
// A spin lock and the locks of packages rlock and fairlock of one name are one lock, as is Redisson's RLock. It takes
// nothing while a waiter of another kind is queued. Its Unlock hands the lock to the first in that queue.
//
// Its guarantees are in package latchkey, but for the waiters. On a client with [latchkey.WithoutPubSub] a hold that
// ForceUnlock takes away is lost at its next renewal, after a third of its lease at the latest.
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

// Lock is what New returns: see [latchkey.Lock]. Its waiters have no place in the queue, and its holds no sequence.
type Lock = latchkey.Lock

// Option configures a lock.
type Option = latchkey.LockOption

// WithBackoff bounds the random pauses between two attempts: up to first after the first attempt, and up to
// twice as much after each further one, but never more than last. first is at least 100 µs, last at least first and at
// most a minute. Default: 1 ms and 128 ms.
func WithBackoff(first, last time.Duration) Option { return terms.WithPolling(first, last) }

// New returns the lock of a name. It does no I/O. The name is as for package rlock. New returns ErrInvalid for other
// names, a nil client, options out of range, and options of another package.
func New(c *latchkey.Client, name string, opts ...Option) (*Lock, error) {
	o := terms.Collect("spinlock", terms.OptionsCommon|terms.OptionBackoff, opts)
	l, err := lock.New((*session.Handle)(c).Client(), name, false, o.Polling())
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
