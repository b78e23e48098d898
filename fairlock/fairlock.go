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
// behind. Locks of one name are one lock, whether they come from package rlock, from package fairlock, or
// from a Java process that uses Redisson's RLock.
package fairlock

import (
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/grant"
	"github.com/latchkey-go/latchkey/internal/lock"
	"github.com/latchkey-go/latchkey/internal/session"
)

// Lock is what [New] returns. Its methods are those of every lock: see [latchkey.Lock].
type Lock = latchkey.Lock

// Option configures a lock.
type Option grant.Option

// WithLease sets the lease. It is renewed every third of it for as long as the lock is held. After its
// holder was killed the lock is free after the lease at the latest. From 10 ms to 24 h; default: the
// client's. Excludes [WithFixedLease].
func WithLease(d time.Duration) Option { return Option(grant.WithLease(d)) }

// WithFixedLease makes holds last d at most: they are not renewed beyond that, and after d they are lost.
// From 10 ms to 24 h.
func WithFixedLease(d time.Duration) Option { return Option(grant.WithFixedLease(d)) }

// WithMinHold keeps the lock taken for d from when it was acquired: an Unlock before that leaves the rest
// as a lease that nobody renews. It is for a job that must not run twice although the clocks of its
// processes differ. More than 0, up to 24 h, and not longer than a fixed lease or longest hold; default:
// none.
func WithMinHold(d time.Duration) Option { return Option(grant.WithMinHold(d)) }

// WithMaxHold ends the renewal early enough that a hold is lost d after it was acquired at the latest. At
// least 10 ms; default: none.
func WithMaxHold(d time.Duration) Option { return Option(grant.WithMaxHold(d)) }

// WithoutReentry makes attempts return ErrReentered at once when their context holds the lock already.
func WithoutReentry() Option { return Option(grant.WithoutReentry()) }

// New returns the lock of a name. It does no I/O. The name, after the client's key prefix, is a key in
// Redis: 1 to 1024 bytes, with balanced braces, of which the first pair is not empty. New returns
// ErrInvalid for other names, a nil client and options out of range.
func New(c *latchkey.Client, name string, opts ...Option) (*Lock, error) {
	set := make([]grant.Option, len(opts))
	for i, o := range opts {
		set[i] = grant.Option(o)
	}
	l, err := lock.New((*session.Handle)(c).Client(), name, false, set)
	return (*Lock)(l), err
}
