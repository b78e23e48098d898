package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/session"
	"github.com/latchkey-go/latchkey/internal/terms"
)

// LockOption configures a lock of packages rlock, fairlock, spinlock, rwlock and redlock. A nil LockOption does
// nothing. A program that chooses its lock by configuration makes one list:
//
//	terms := []latchkey.LockOption{latchkey.WithLease(time.Minute), latchkey.WithMaxHold(time.Hour)}
//	...
//	lock, err := fairlock.New(c, "orders:42", terms...)
//
// The options of this package are for all locks, but a redlock refuses [WithMinHold] and [WithDeadlockCheck]. A New
// that is given an option of another package returns [ErrInvalid], which names the option.
type LockOption interface{ lockOption }

type lockOption = terms.Option

// SharedOption is an option of clients and of locks. The option of a lock counts for that lock.
type SharedOption interface {
	Option
	LockOption
}

// WithLease sets the lease: how long a lock stays taken after its holder was killed, and how long a hold survives an
// outage of Redis. While the lock is held, the client renews it after each third of the lease. From 10 ms to 24 h (for
// a redlock from 100 ms).
//
// On a client it is the default for its primitives; without it: 10 s. On a lock it excludes [WithFixedLease]. Readers
// of a process with the same lease share an entry in Redis.
func WithLease(d time.Duration) SharedOption { return lease(d) }

type lease time.Duration

func (d lease) SetClient(o *session.Options) { o.Lease = time.Duration(d) }

func (d lease) SetLock(o *terms.Options) { terms.WithLease(time.Duration(d)).SetLock(o) }

// WithFixedLease makes holds last d at most: the client does not renew them, and after d they are lost. From 10 ms to
// 24 h (for a redlock from 100 ms). Readers with it share no entry of their process.
func WithFixedLease(d time.Duration) LockOption { return terms.WithFixedLease(d) }

// WithMinHold keeps the lock taken for d after it was acquired: after an earlier Unlock, the rest is a lease that
// nothing renews. It is for a job that must not run twice although the clocks of its processes differ. More than 0, up
// to 24 h, and not longer than a fixed lease or longest hold; default: none. After an Attach, d counts from that. A
// detached hold lasts for the time of the Detach alone. Readers with it share no entry of their process.
func WithMinHold(d time.Duration) LockOption { return terms.WithMinHold(d) }

// WithMaxHold ends the renewals in time for the hold to be lost at most d after it was acquired. At least 10 ms;
// default: none. Readers with it share no entry of their process.
func WithMaxHold(d time.Duration) LockOption { return terms.WithMaxHold(d) }

// WithoutReentry makes an attempt return [ErrReentered] at once if its context holds the lock already.
func WithoutReentry() LockOption { return terms.WithoutReentry() }

// WithDeadlockCheck ends a wait with [ErrDeadlock] if it can never end: its context is derived from a hold's context,
// and the holder of the wanted lock waits, directly or over others, for that hold's lock. Of such a circle the
// youngest wait ends whose lock has the option. The others go on when its caller gives back what it holds. Default: a
// circle stays until a context ends.
//
// It is the wait-for graph of databases, over processes. The client asks once a wait has lasted for a second, and then
// once a second, with two commands for each lock on the way. A call that does not wait, or holds nothing, costs nothing.
// A circle is found two to four seconds after it closes, because it must be seen twice. The graph is made of what clients
// tell of holds of rlock, fairlock, spinlock, rwlock, multilock and leader (see [Identity]). So it misses a circle with
//   - several clients, if one tells nothing ([WithoutRecord]), or has more than 1000 waits and holds;
//   - a hold whose context is no ancestor of the wait's, as in a multi-lock that is not complete yet;
//   - a hold of another client than the wait's, unless the wait is for that very lock;
//   - permits, latches and barriers, a redlock, or a lock of Redisson;
//   - more than 32 waits.
//
// See also [Client.Deadlocks].
func WithDeadlockCheck() LockOption { return terms.WithDeadlockCheck() }
