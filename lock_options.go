package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// LockOption configures a lock: the New of packages rlock, fairlock, spinlock, rwlock and redlock takes it. A
// nil one does nothing. So a program that chooses its lock by configuration makes one list:
//
//	terms := []latchkey.LockOption{latchkey.WithLease(time.Minute), latchkey.WithMaxHold(time.Hour)}
//	...
//	lock, err := fairlock.New(c, "orders:42", terms...)
//
// The options of this package are for all locks; a redlock refuses [WithMinHold] and [WithDeadlockCheck]. Some
// packages have options of their own. A New that is given an option of another package returns [ErrInvalid],
// which names the option.
type LockOption interface{ lockOption }

type lockOption = terms.Option

// SharedOption is an option of clients and of locks. That of a lock counts for the lock.
type SharedOption interface {
	Option
	LockOption
}

// WithLease sets the lease: how long a lock stays taken after its holder was killed, and how long a hold
// survives a Redis that is away. It is renewed after each third of it for as long as the lock is held. From
// 10 ms to 24 h (of a redlock from 100 ms).
//
// Of a client it is the lease of what is not given another; default: 10 s. Of a lock the default is the
// client's, and it excludes [WithFixedLease]. Readers of a read-write lock that have the same lease share an
// entry of their process.
func WithLease(d time.Duration) SharedOption { return lease(d) }

type lease time.Duration

func (d lease) SetClient(o *session.Options) { o.Lease = time.Duration(d) }

func (d lease) SetLock(o *terms.Options) { terms.WithLease(time.Duration(d)).SetLock(o) }

// WithFixedLease makes holds last d at most: they are not renewed beyond that, and after d they are lost.
// From 10 ms to 24 h (of a redlock from 100 ms). Readers with it share no entry of their process.
func WithFixedLease(d time.Duration) LockOption { return terms.WithFixedLease(d) }

// WithMinHold keeps the lock taken for d from when it was acquired: an Unlock before that leaves the rest as
// a lease that nobody renews. It is for a job that must not run twice although the clocks of its processes
// differ. More than 0, up to 24 h, and not longer than a fixed lease or longest hold; default: none. A
// redlock has no such option. Readers with it share no entry of their process. After an Attach it counts from
// that; what is detached lasts for the time of the Detach alone.
func WithMinHold(d time.Duration) LockOption { return terms.WithMinHold(d) }

// WithMaxHold ends the renewal early enough that a hold is lost d after it was acquired at the latest. At
// least 10 ms; default: none. Readers with it share no entry of their process.
func WithMaxHold(d time.Duration) LockOption { return terms.WithMaxHold(d) }

// WithoutReentry makes attempts return [ErrReentered] at once when their context holds the lock already.
func WithoutReentry() LockOption { return terms.WithoutReentry() }

// WithDeadlockCheck makes a wait end with [ErrDeadlock] when it can never end: its context is derived from
// that of a hold, and somebody waits for that hold's lock while holding this one, or one that leads here over
// others. Of such a circle the youngest wait ends whose lock has the option. The others go on once its caller
// gives back what it holds. Default: a circle stays until a context ends.
//
// It is the wait-for graph of databases, over processes. It is asked when a wait has lasted for a second, and
// once a second from then on, with two commands for each lock on the way. An acquire without a wait, and a
// wait while nothing is held, cost nothing. A circle is found two to four seconds after it closes: it must be
// seen twice. What can be seen is what clients tell of themselves (see [Identity]), of holds of rlock,
// fairlock, spinlock, rwlock, multilock and leader. So no circle is found that runs over
//   - several clients, of which one tells nothing, as WithoutRecord, or has more than 1000 waits and holds;
//   - a hold whose context is no ancestor of the wait's, as of a multi-lock that is not complete yet;
//   - a hold of another client than the wait's, unless the wait is for that very lock;
//   - permits, latches and barriers, a redlock, or a lock of Redisson;
//   - more than 32 waits.
//
// See also [Client.Deadlocks].
func WithDeadlockCheck() LockOption { return terms.WithDeadlockCheck() }
