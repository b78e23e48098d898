// Package fairlock is a lock across processes that is granted in the order of arrival: all waiters of all processes
// queue in Redis, first in, first out. The order is that in which Redis received them ([latchkey.Hold.Sequence]). A
// waiter whose process died is skipped, and costs no time. A waiter whose subscription was interrupted keeps its place
// unless its turn came. Package rlock needs fewer queue entries, and is fair among processes instead.
//
// Its guarantees are in package latchkey. Locks of one name are one lock, whether they come from package rlock,
// fairlock or spinlock, or from a Java process that uses Redisson's RLock. It does not share the layout of Redisson's
// RFairLock.
package fairlock

import (
	"context"

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

// New returns the lock of a name. It does no I/O. The name is as for package rlock. New returns ErrInvalid for other
// names, a nil client, options out of range, and options of another package.
func New(c *latchkey.Client, name string, opts ...Option) (*Lock, error) {
	l, err := lock.New((*session.Handle)(c).Client(), name, false, terms.Collect("fairlock", terms.OptionsCommon, opts))
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
