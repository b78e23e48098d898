// Package fairlock is a lock across processes that is granted in the order of arrival: all waiters of all
// processes queue in Redis, first in, first out. The order is that in which Redis received them
// ([latchkey.Hold.Sequence]). A waiter whose process died is skipped. A waiter whose subscription was
// interrupted keeps its place unless its turn came meanwhile.
//
// A dead waiter costs no time, unlike in Redisson's RFairLock, whose layout this lock does not share.
// Package rlock needs fewer queue entries, and is fair among processes instead.
//
// # Guarantees
//
// Those of package latchkey: at most one trusted hold, tokens that grow, no forgotten waiter, nothing left
// behind. Locks of one name are one lock, whether they come from package rlock, fairlock or spinlock, or from
// a Java process that uses Redisson's RLock.
package fairlock

import (
	"context"

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

// New returns the lock of a name. It does no I/O. The name, after the client's key prefix, is a key in
// Redis: 1 to 1024 bytes, with balanced braces, of which the first pair is not empty. New returns
// ErrInvalid for other names, a nil client, options out of range, and those that are another package's.
func New(c *latchkey.Client, name string, opts ...Option) (*Lock, error) {
	l, err := lock.New((*session.Handle)(c).Client(), name, false, terms.Collect("fairlock", terms.OptionsCommon, opts))
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
