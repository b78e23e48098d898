// Package rlock is a lock across processes, as Redisson's RLock: blocking, re-entrant by context, leased and
// fenced.
//
// The goroutines of one process stand in line inside it, first come first served, and the one at the head
// queues in Redis, where processes take turns in the order in which they came. Waiting therefore costs Redis
// one queue entry for each process, however many goroutines wait. For strict order among all waiters of all
// processes see package fairlock.
//
// When its process holds the lock, Unlock passes it to the next goroutine in line without a command: that
// takes about a microsecond. Once another process waits, only a small budget is left before it is given its
// turn: see [WithBudget]. Such an Unlock does not ask Redis whether the lock was still held: it relies on the
// lease, and on being told of a ForceUnlock. Holds with a shortest or longest time of their own always go
// through Redis.
//
// # Guarantees
//
// Those of package latchkey: at most one trusted hold, tokens that grow, no forgotten waiter, nothing left
// behind. One name is one lock, also between package rlock and package fairlock, and with Java processes that
// use Redisson's RLock.
package rlock

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

// WithLease sets the lease, which is renewed every third of it for as long as the lock is held: after its
// holder was killed the lock is free no later than this. From 10 ms to 24 h; default: the client's. Excludes
// [WithFixedLease].
func WithLease(d time.Duration) Option { return Option(grant.WithLease(d)) }

// WithFixedLease makes holds last d at most: they are not renewed beyond that, and are lost then. From 10 ms
// to 24 h.
func WithFixedLease(d time.Duration) Option { return Option(grant.WithFixedLease(d)) }

// WithMinHold keeps the lock taken for d from when it was acquired: an Unlock before leaves the rest as a
// lease that nobody renews. For a job that must not run twice although the clocks of its processes differ.
// More than 0, up to 24 h, and not longer than a fixed lease or longest hold; default: none.
func WithMinHold(d time.Duration) Option { return Option(grant.WithMinHold(d)) }

// WithMaxHold ends renewal so that a hold is lost d after it was acquired at the latest. At least 10 ms;
// default: none.
func WithMaxHold(d time.Duration) Option { return Option(grant.WithMaxHold(d)) }

// WithoutReentry makes attempts with a context that holds the lock already return ErrReentered at once.
func WithoutReentry() Option { return Option(grant.WithoutReentry()) }

// WithBudget bounds how long the lock stays among the goroutines of this process while other processes wait:
// after it is known that they do, at most holds further holds begin here, and none later than span, before
// they are given their turn. Should the message that says so be lost, they get it four spans after this
// process got the lock. A longer budget means fewer commands, a shorter one less waiting for the others. From
// 0 to 5000 holds and up to a second; default: 32 holds and 5 ms. With 0 holds every hold goes through Redis.
// Among locks of one name, that of whoever is next in line counts.
func WithBudget(holds int, span time.Duration) Option { return Option(grant.WithBudget(holds, span)) }

// New returns the lock of a name. It does no I/O. The name, with the client's key prefix, is a key in Redis:
// 1 to 1024 bytes, with balanced braces, of which the first pair is not empty. It returns ErrInvalid for
// other names, a nil client and options out of range.
func New(c *latchkey.Client, name string, opts ...Option) (*Lock, error) {
	set := make([]grant.Option, len(opts))
	for i, o := range opts {
		set[i] = grant.Option(o)
	}
	l, err := lock.New((*session.Handle)(c).Client(), name, true, set)
	return (*Lock)(l), err
}
